//===- ProgramNorms.h - norms of the parameters of a program --------------===//
#ifndef CTXC_VERIFY_PROGRAMNORMS_H
#define CTXC_VERIFY_PROGRAMNORMS_H

#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Verify/PatchNorms.h"
#include <functional>

namespace ctxc {

/// Which elements of a stored parameter, or slice of one, a process has; none given: all.
using OwnElements = std::function<std::vector<ElementRun>(llvm::StringRef parameter)>;

/// Norms for the program's layers, of the numbers that `weights` has in the program's storage
/// type. `weights` and the program's MLIR context must outlive the result. Norms in `known` are not
/// computed again. With `own`, norms are those of these elements.
std::unique_ptr<PatchNorms>
programNorms(const Program &program, Weights &weights,
             std::shared_ptr<KnownNorms> known = std::make_shared<KnownNorms>(),
             OwnElements own = nullptr);

} // namespace ctxc

#endif // CTXC_VERIFY_PROGRAMNORMS_H
