//===- Examples.h - what three models answer, side by side ----------------===//
#ifndef CTXC_DISTIL_EXAMPLES_H
#define CTXC_DISTIL_EXAMPLES_H

#include "ctxc/Distil/Evaluate.h"

namespace ctxc {

/// The likeliest answers to a prompt: of the full, the adapted and the plain model.
struct Example {
  std::vector<int64_t> prompt, full, adapted, plain;
};

/// Answers of at most `length` tokens, no prompt and answer longer than the longest text, to the
/// first `count` different prompts of the request's texts; a token of `stops` ends an answer, and
/// does not belong to it. Errors: those of `sample`. A model without a token in front, or with
/// entries in its place, has no answer to an empty prompt.
llvm::Expected<std::vector<Example>> examples(SplitModel model, const Adapter &adapter,
                                              const EvaluateRequest &request, size_t count,
                                              int64_t length, llvm::ArrayRef<int64_t> stops);

} // namespace ctxc

#endif // CTXC_DISTIL_EXAMPLES_H
