//===- Distil.h - a context as a lasting change of the weights ------------===//
//
// For every token of a text, the full run shows what each matrix should write, and the reduced run
// shows what it reads. From both, the change of each matrix is computed in closed form, without
// gradients: layer by layer, with the layers below already changed. docs/distil-method.md has the
// formulas and what was measured.
//
// A distilled adapter is approximate. A Card (Evaluate.h) says how good it is.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_DISTIL_H
#define CTXC_DISTIL_DISTIL_H

#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Program/Adapter.h"
#include "ctxc/Runtime/Passage.h"
#include "ctxc/Transforms/SplitLayers.h"

namespace ctxc {

/// The matrices of a layer that can be fitted, in the order in which they are fitted. The product
/// of each leads to a value through which the whole effect of the context passes: in most models,
/// attention's output projection, then the MLP's. They are found by the ops' interfaces. Of a
/// mixture, the last matrices of all experts are one site, unless a matrix that every token goes
/// through leads to the same value (shared experts).
llvm::SmallVector<FitSite> findFitSites(const LayerVerdict &layer);

/// A model whose layers are split at its sites, ready to run. All members must outlive its uses.
struct SplitModel {
  const SplitProgram &split;
  StepKernels &steps, &targets; ///< of split.program and split.targets
  Weights &weights;             ///< in float32
};

/// Some text after the context, or after nothing.
struct TextSequence {
  std::vector<int64_t> tokens;
  int64_t prompt = 0; ///< how many of the tokens are a prompt; the others are its answer
  int64_t turn = 1;   ///< of a conversation, which turn the answer is in
};

/// What is fitted, and how each site is.
struct FitOptions {
  int64_t entries = 0;      ///< so many virtual entries of each head (Entries.h) in the place of
                            ///< changed weights; 0: weights change
  int64_t rank = 16;        ///< of each matrix's change; 0: no limit
  double lambda = 1e-2;     ///< strength of a matrix's ridge penalty, relative to the data of a
                            ///< few hundred tokens; with more tokens it is less (ridgeStrength)
  int64_t rounds = 2;       ///< Gauss–Newton rounds, for a matrix that a norm follows
  bool scales = true;       ///< fit norms' scales too
  double lambdaScale = 0.3; ///< strength of a scale's ridge penalty, relative to the rows' weight
  double tau = 0.1;         ///< damps steps at small entries of a scale, relative to its median
  double trust = 2;         ///< longer steps on the norm's sphere are damped
  int64_t passes = 0;       ///< passes of gradient descent after the closed form, at most
  double rate = 0.02;       ///< size of its first step, relative to what the step changes
  int64_t otherRank = 0;    ///< the passes also change all other matrices behind the first site's,
                            ///< by this rank; 0: they do not
};

/// Is called with the progress of a long computation: first with 0, last with done = all, unless
/// the computation ends with an error.
using ProgressCall = std::function<void(int64_t done, int64_t all)>;

/// A further context, for which the same adapter stands in front of its own texts.
struct OtherContext {
  std::vector<int64_t> context;       ///< with the tokens that the tokenizer puts in front
  std::vector<TextSequence> texts;    ///< each follows this context
  std::vector<TextSequence> choosing; ///< as DistilRequest's; may be empty
};

struct DistilRequest {
  std::vector<int64_t> context; ///< with the tokens that the tokenizer puts in front
  /// What still stands before every text when the context is left out: the tokens that the
  /// tokenizer puts in front, and those of the context that are kept.
  std::vector<int64_t> prefix;
  /// Which tokens of the prefix the texts see (Adapter::seen); empty: all. None beside entries,
  /// which leave `unrelated` and its weight aside, too.
  std::vector<int64_t> seen;
  /// What stands before a text of the model without the context, as which unrelated texts should be
  /// predicted: the tokens that the tokenizer puts in front. None: the prefix.
  std::optional<std::vector<int64_t>> front;
  std::vector<TextSequence> texts;     ///< each directly follows the context
  std::vector<TextSequence> unrelated; ///< on which nothing should change; each follows the prefix
  /// Texts that choose the number of gradient passes: the one after which the adapter is best on
  /// them. Then the fit is repeated with that number on all texts, these included. May be empty.
  std::vector<TextSequence> choosing;
  /// What is fitted together with this context and its texts: a token of any text has the same
  /// weight. May be empty.
  std::vector<OtherContext> others;
  /// The weight of all unrelated tokens, and of the prefix's, relative to the texts' weight.
  double protection = 0.3, prefixWeight = 0.05;
  FitOptions fit;
  /// The progress over the matrices, and then over the gradient steps; may be empty.
  ProgressCall fitted, stepped;
};

/// How much each token of `context` tells, from its token `front` on: the sum of two terms, each
/// divided by its mean over the context: how unlikely the model finds the token after those before
/// it, and how much more likely the context makes this token in the answers of `texts`. A token
/// with none before it scores highest. Errors: a model without a head; positions that it does not
/// have; logits that are not finite.
llvm::Expected<std::vector<double>> tellingScores(SplitModel model, llvm::ArrayRef<int64_t> context,
                                                  int64_t front,
                                                  llvm::ArrayRef<TextSequence> texts);
/// How much attention reads of each token of `context` for `texts`, over all layers and heads: the
/// weight of its key times the length of its value, of the sum over all keys. The last token scores
/// highest, and where `front` is 0 the first one too. Errors: an op before attention that
/// has no gradient; positions that the model does not have.
llvm::Expected<std::vector<double>> readScores(SplitModel model, llvm::ArrayRef<int64_t> context,
                                               int64_t front, llvm::ArrayRef<TextSequence> texts);
/// The places, ascending, of at most `count` tokens from token `front` on: those of the units with
/// the highest mean scores. Units begin at `starts`, of which the first is `front`; none: each
/// token is one. A unit is taken as a whole, or not at all where the ones before it leave too few
/// tokens.
std::vector<int64_t> mostTelling(llvm::ArrayRef<double> scores, int64_t front, int64_t count,
                                 llvm::ArrayRef<int64_t> starts = {});

/// The token that alone stands in front of the texts, once or several times, and with which some
/// text begins. Equal tokens at the beginning have equal states: the second is attention's sink as
/// the first one is, and says nothing else.
std::optional<int64_t> tokenBeforeItself(llvm::ArrayRef<int64_t> prefix,
                                         llvm::ArrayRef<TextSequence> texts);

struct Distilled {
  Adapter adapter;
  int64_t tokens = 0, protectedTokens = 0; ///< how many were fitted, and protected
  /// The chosen number of gradient passes, and KL(full ‖ adapted) before and after these passes, on
  /// `choosing` while it was not fitted (or on the fitted texts, if it is empty). It never
  /// increases.
  int64_t passes = 0;
  double divergenceBefore = 0, divergenceAfter = 0;
  std::optional<Adapter> closedForm; ///< what the passes began with, where there were some
};

/// Errors: less memory than it needs, which is known before anything is computed; no site; no text,
/// or fewer tokens than the rank; positions that the model does not have; a matrix that the texts
/// do not determine; numbers that are not finite. With virtual entries those of fitEntries, and
/// several contexts, or a rank of other matrices.
llvm::Expected<Distilled> distil(SplitModel model, const DistilRequest &request);

} // namespace ctxc

#endif // CTXC_DISTIL_DISTIL_H
