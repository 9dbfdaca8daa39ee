//===- Template.h - Jinja, as far as chat templates use it ----------------===//
//
// The language of chat templates: what Jinja 3.1 makes of a template in the environment of
// transformers' apply_chat_template (trim_blocks, lstrip_blocks, loop controls, the immutable
// sandbox). Templates come from checkpoints and may be hostile: nesting, steps and memory have
// limits, and nothing outside of the given variables can be reached.
//
// Left out, and refused with a message: include, import, extends, block, autoescape, recursive
// loops; filters and methods that chat templates do not use.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TEMPLATE_TEMPLATE_H
#define CTXC_TEMPLATE_TEMPLATE_H

#include "ctxc/Template/Value.h"
#include "llvm/Support/Error.h"
#include <ctime>

namespace ctxc::jinja {

struct Block;

struct RenderLimits {
  /// How many expressions and statements may run; 64 bytes of new text count as one.
  uint64_t steps = 4u << 20;
  /// How deeply calls of macros may be nested.
  unsigned calls = 64;
};

class Template {
public:
  /// Reads a template. Messages begin with `name` and the line: `name: line 3: …`.
  static llvm::Expected<Template> parse(llvm::StringRef text, llvm::StringRef name);
  Template(Template &&);
  Template &operator=(Template &&);
  ~Template();

  /// The text for `variables`, where strftime_now sees `now` (local time). Errors, located: what
  /// Python would raise, raise_exception's message, a limit, a part of Jinja that is left out.
  llvm::Expected<std::string> render(llvm::ArrayRef<std::pair<std::string, Value>> variables,
                                     const std::tm &now, const RenderLimits &limits = {}) const;

private:
  Template(std::string name, std::unique_ptr<Block> body);
  std::string name;
  std::unique_ptr<Block> body;
};

} // namespace ctxc::jinja

#endif // CTXC_TEMPLATE_TEMPLATE_H
