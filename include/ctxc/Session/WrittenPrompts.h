//===- WrittenPrompts.h - prompts that a model adds to given ones ---------===//
//
// An adapter knows what it was fitted to: ten questions, however many answers each has, cover less
// of a context than a hundred do. The model reads the context and the given prompts, as a list, and
// goes on with the list.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_WRITTENPROMPTS_H
#define CTXC_SESSION_WRITTENPROMPTS_H

#include "ctxc/Session/Model.h"

namespace ctxc {

struct PromptsRequest {
  std::vector<int64_t> context; ///< with the tokenizer's tokens in front
  /// Not empty. The list has them in another order for each prompt that is written.
  std::vector<std::vector<int64_t>> given;
  size_t count = 0;
  double temperature = 1;
  std::vector<int64_t> stops; ///< tokens that end a text
  uint64_t seed = 0;
};

/// Up to `count` prompts, each different from all others and from the given ones; fewer where the
/// model writes too few that are. Errors: no tokenizer; not one prompt is new; those of
/// Model::sample.
llvm::Expected<std::vector<std::vector<int64_t>>> writePrompts(Model &model,
                                                               const PromptsRequest &request);

} // namespace ctxc

#endif // CTXC_SESSION_WRITTENPROMPTS_H
