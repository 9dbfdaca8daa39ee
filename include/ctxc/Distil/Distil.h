//===- Distil.h - a context as a lasting change of the weights ------------===//
//
// The full run tells, for every token of a text, what each matrix should write; the reduced run
// tells what it reads. From both, layer by layer, with the layers below already changed, the change
// of each matrix follows in closed form: no gradient. docs/distil.md has the formulas, and what was
// measured.
//
// A distilled adapter is approximate. How good it is, says a Card (Evaluate.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_DISTIL_H
#define CTXC_DISTIL_DISTIL_H

#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Program/Adapter.h"
#include "ctxc/Runtime/Passage.h"
#include "ctxc/Transforms/SplitLayers.h"

namespace ctxc {

/// The matrices of a layer that can be fitted, in the order in which they are: for each value that
/// the whole context passes on its way through the block, a matrix whose product leads to it
/// (attention's output projection, then the MLP's). By the ops' interfaces; a mixture's experts,
/// whose matrices serve some tokens only, are none.
llvm::SmallVector<OutputPatch> findFitSites(const LayerVerdict &layer);

/// A model whose layers are split at its sites, ready to run. All must outlive its uses.
struct SplitModel {
  const SplitProgram &split;
  StepKernels &steps, &targets; ///< of split.program and split.targets
  Weights &weights;             ///< in float32
};

/// Some text after the context, or after nothing.
struct TextSequence {
  std::vector<int64_t> tokens;
  int64_t prompt = 0; ///< so many tokens are given, the others are an answer
};

/// How each site is fitted.
struct FitOptions {
  int64_t rank = 16;        ///< of each matrix's change; 0: as it comes
  double lambda = 1e-2;     ///< the ridge, relative to the data's own size
  int64_t rounds = 2;       ///< of Gauss–Newton, through a norm
  bool scales = true;       ///< fit norms' scales too
  double lambdaScale = 0.3; ///< how much a scale is held, relative to the rows
  double tau = 0.1;         ///< what damps small entries of a scale
  double trust = 2;         ///< the length of a step on the sphere from which it is damped
  int64_t passes = 0;       ///< of gradient over the texts, behind the closed form, at most
  double rate = 0.02;       ///< of the first step: relative to the size of what it changes
};

struct DistilRequest {
  std::vector<int64_t> context; ///< with the tokenizer's tokens in front
  /// What stays in front of every text once the context is gone: the tokenizer's tokens in front,
  /// and what is kept of the context.
  std::vector<int64_t> prefix;
  std::vector<TextSequence> texts;     ///< each after the context by itself
  std::vector<TextSequence> unrelated; ///< what should not change, each after the prefix
  /// Not fitted at first: the passes of gradient end where these are best. Then they are fitted
  /// like the other texts, with so many passes. May be empty.
  std::vector<TextSequence> choosing;
  /// The weight of all unrelated tokens, and of the prefix's, relative to that of the texts'.
  double protection = 0.3, prefixWeight = 0.05;
  FitOptions fit;
};

/// The `count` tokens of `context`, from its token `front` on, that tell most, in the context's
/// order: by how much they surprise the model, given those before them, and by how much more likely
/// the context makes the same tokens in the answers of `texts`; each relative to its mean over the
/// context. A token without any before it comes first. Errors: a model without a head; positions
/// that it does not have; logits that are not finite.
llvm::Expected<std::vector<int64_t>> mostTelling(SplitModel model, llvm::ArrayRef<int64_t> context,
                                                 int64_t front, int64_t count,
                                                 llvm::ArrayRef<TextSequence> texts);

struct Distilled {
  Adapter adapter;
  int64_t tokens = 0, protectedTokens = 0; ///< that were fitted
  /// The passes of gradient that were worth it, and KL(full ‖ adapted) on the texts that choose,
  /// before these were fitted (on the fitted ones, where none choose), before the passes and after
  /// them: never larger than before.
  int64_t passes = 0;
  double divergenceBefore = 0, divergenceAfter = 0;
};

/// Errors: no site; no text, or fewer tokens than the rank; positions that the model does not have;
/// a site whose rows do not determine it; numbers that are not finite.
llvm::Expected<Distilled> distil(SplitModel model, const DistilRequest &request);

} // namespace ctxc

#endif // CTXC_DISTIL_DISTIL_H
