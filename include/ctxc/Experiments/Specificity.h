//===- Specificity.h - the effect of a patch on other tokens --------------===//
//
// A patch is exact for one token after one context. These functions leave it in the model for other
// tokens of its prompt, for other prompts, and for the tokens that follow its own, and measure how
// far the logits move. The paper prefers matrices, whose change acts along only one direction of
// their input, to vectors, which act on every input (section "Results").
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPERIMENTS_SPECIFICITY_H
#define CTXC_EXPERIMENTS_SPECIFICITY_H

#include "ctxc/Program/Executor.h"

namespace ctxc::experiments {

/// How a model's answer moved; p are the probabilities before, q those after.
struct AnswerChange {
  double totalVariation = 0; ///< ½ Σ |p − q|
  double divergence = 0;     ///< KL(p ‖ q) = Σ p log(p / q), in nats
  double linf = 0;           ///< max |·| of the logits' difference
  bool sameToken = false;    ///< the largest logit is the same one
};

/// The change from `before` to `after`, logits of one token each: equally many, and finite.
AnswerChange changeOf(llvm::ArrayRef<double> before, llvm::ArrayRef<double> after);

enum class PatchPart { Whole, Matrices, Vectors };

/// Only the rank1 changes, or only the deltas.
Patch partOf(const Patch &patch, PatchPart part);

/// Logits of some tokens of a prompt, one after the other.
struct Answers {
  std::vector<std::vector<double>> logits; ///< of each of the positions asked for
};

/// The prompt's tokens run together, each seeing those before it, with `patch` (which may be null)
/// on all of them; logits at `positions`, ascending.
llvm::Expected<Answers> answersInContext(Executor &executor, llvm::ArrayRef<int64_t> tokens,
                                         llvm::ArrayRef<int64_t> positions, const Patch *patch);

/// The tokens at `positions`, each run alone at its position, with `patch`, which may be null.
llvm::Expected<Answers> answersAlone(Executor &executor, llvm::ArrayRef<int64_t> tokens,
                                     llvm::ArrayRef<int64_t> positions, const Patch *patch);

/// The effect of a patch `distance` tokens behind the one that it was made for, compared with the
/// full run, whose context has all tokens before. The patch is not computed anew.
struct StaleStep {
  int64_t distance = 0, position = 0;
  AnswerChange alone;     ///< the token by itself, with the patch
  AnswerChange following; ///< after the tokens since the patch's own, all of them with the patch
  /// The same without a patch: the effect of a missing context.
  AnswerChange aloneControl, followingControl;
};

/// The patch of the token at `position` used for it and for all tokens behind it in `tokens`.
/// `full` are the full run's answers from `position` on (answersInContext without a patch).
llvm::Expected<std::vector<StaleStep>> staleness(Executor &executor, llvm::ArrayRef<int64_t> tokens,
                                                 int64_t position, const Patch &patch,
                                                 const Answers &full);

} // namespace ctxc::experiments

#endif // CTXC_EXPERIMENTS_SPECIFICITY_H
