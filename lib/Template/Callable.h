// Functions of a template: macros, methods of values, and those that the environment has.
#ifndef CTXC_LIB_TEMPLATE_CALLABLE_H
#define CTXC_LIB_TEMPLATE_CALLABLE_H

#include "ctxc/Template/Value.h"

namespace ctxc::jinja {

class Machine;

/// The arguments of a call, evaluated.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Callable {
public:
  virtual ~Callable() = default;
  /// The result; where the call fails, the machine has failed.
  virtual Value call(Machine &machine, Arguments arguments) const = 0;
};

/// The arguments in the order of `parameters`, each absent where it was not given. Fails for an
/// argument that is unknown, surplus or given twice; `what` names the function.
std::vector<std::optional<Value>> bindArguments(Machine &machine, llvm::StringRef what,
                                                Arguments arguments,
                                                llvm::ArrayRef<llvm::StringRef> parameters);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_CALLABLE_H
