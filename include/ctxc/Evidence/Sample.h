//===- Sample.h - activations on which a block is tried -------------------===//
//
// A few tokens of a sequence as a block sees them: the context, the token that is patched, and
// others that are not. By default they are random numbers from a seed; tests and witnesses set
// their own.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EVIDENCE_SAMPLE_H
#define CTXC_EVIDENCE_SAMPLE_H

#include "ctxc/Analysis/InputSources.h"
#include "ctxc/Reference/State.h"
#include "dialects/XF/XF.h"

namespace ctxc {

/// A matrix for each argument of a block, with one row for each token.
using Activations = llvm::SmallVector<reference::Matrix>;

struct Sample {
  Activations context; ///< the tokens before, at positions 0, 1, …
  Activations full;    ///< one token, after them
  Activations reduced; ///< the same token in the reduced run; different if the block's inputs
                       ///< depend on the context (start layer)
  Activations others;  ///< tokens that the patch was not made for, a sequence of their own
  int64_t kept = 0;    ///< how many of `context` the reduced run keeps, the first ones

  int64_t contextSize() const { return context.empty() ? 0 : context.front().rows(); }
};

struct SampleOptions {
  uint64_t seed = 1;
  int64_t context = 4, others = 8, kept = 0; ///< tokens
  InputSources inputsAreSources = {};        ///< the inputs that differ in `reduced`
};

/// Normally distributed numbers with standard deviation 1 that depend only on the seed and the
/// block's types.
Sample randomSample(xf::BlockOp block, const SampleOptions &options);

} // namespace ctxc

#endif // CTXC_EVIDENCE_SAMPLE_H
