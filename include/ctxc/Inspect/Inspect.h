//===- Inspect.h - what a context did to a token's weights ----------------===//
//
// Examines patches (Algorithm 1) by four questions:
//
//   how large is it, and where?   norms by layer and parameter, for every token;
//   how does it change?           the cosine of each token's patch with the one before;
//   what does it say?             what each layer's patch writes into the residual stream, read
//                                 through the model's own head;
//   where does it come from?      the patch that the token would have if a part of the context
//                                 had not been read.
//
// The last two, and the logits of the three runs, are for one token, the subject.
//
// It uses only Executor, so that the same code examines the compiled kernels and the float64
// reference.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_INSPECT_INSPECT_H
#define CTXC_INSPECT_INSPECT_H

#include "ctxc/Inspect/ContextParts.h"
#include "ctxc/Inspect/PatchDistance.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Verify/Verify.h"

namespace ctxc {

struct InspectRequest {
  /// Tokens, kept positions and start layer; its other members are not read.
  RunRequest run;
  int64_t generate = 0; ///< tokens that the full run adds to the given ones, greedily
  /// The position of the subject, 1 or more; none: the last given token's.
  std::optional<int64_t> subject;
  /// Into what, and into how many parts at most, the subject's context is divided.
  Grain grain = Grain::Token;
  size_t parts = 64;
  size_t nearest = 5; ///< tokens to name at either end of a direction, and as predictions
  /// What a token stands for, for sentences.
  std::function<std::string(int64_t)> text;
};

/// The change of one stored parameter.
struct ParameterChange {
  std::string parameter; ///< its stored name
  std::string name;      ///< the same without the layer's prefix
  int64_t layer = -1;
  bool isMatrix = false;
  bool isOutput = false; ///< true: G, or the matrix before a post-norm; false: F
  double norm = 0;       ///< ‖u‖‖v‖ or ‖Δ‖
  double relative = 0;   ///< to the stored parameter's norm; 0 if that is 0
};

/// What is known about the patch of every token.
struct TokenInspection {
  int64_t token = 0, position = 0;
  int64_t next = -1; ///< the full run's prediction after it; −1 if the model has no head
  PatchNormTable norms;
  /// Cosines with the patch of the position before; no layers if there is none.
  PatchCosines before;
};

/// A token and a number: a probability, or a component of a direction's logits.
struct TokenScore {
  int64_t token = 0;
  double score = 0;
};

/// What one layer's patch writes into the residual stream: for a plan that is controllable, the
/// contextual difference vector A(C, x) − A(C∖Y, x).
///
/// w = (the layer's output with the patch) − (the same with its output-side parameters unpatched).
/// If the output-side matrix is last in the block, as in Llama's, w is its u times vᵀh > 0 and has
/// u's direction; before a post-norm, as in Gemma's, w is the joint effect of u and of the scale's
/// change.
struct LayerWrite {
  int64_t layer = 0;
  double norm = 0;     ///< ‖w‖₂
  double relative = 0; ///< to the layer's output; 0 if that is 0
  /// The logit lens of the direction: ½ (head(d) − head(−d)), where d is w scaled to root mean
  /// square 1 and head is the model's own final norm, scale and matrix; biases cancel. The largest
  /// first, and the smallest first. Empty if there is no head, or w = 0.
  std::vector<TokenScore> towards, away;
  std::vector<double> direction; ///< w itself
};

/// The subject's patch if a part of the context had not been read: the full run reads the context
/// without the part, every other token at its own position; the reduced run is unchanged.
struct LeftOut {
  PositionRange range;            ///< of the context; without the kept positions in it
  std::vector<int64_t> positions; ///< those that were left out
  OfBoth change;                  ///< ‖P − P without‖ of all layers
  OfBoth relative;                ///< the same, divided by ‖P‖; 0 if that is 0
  double totalVariation = 0;      ///< of the full runs with and without the part
  int64_t next = -1;              ///< the full run's prediction without the part
};

/// What is known only about the subject.
struct SubjectInspection {
  int64_t token = 0, position = 0;
  PatchNormTable norms;
  std::vector<ParameterChange> parameters; ///< in layer order
  std::vector<LayerObligations> obligations;
  /// The likeliest tokens of each run, with their probabilities; empty without a head.
  std::vector<TokenScore> full, patched, unpatched;
  TokenMetrics patchedMetrics, unpatchedMetrics; ///< against the full run
  std::vector<LayerWrite> writes;                ///< of the layers that are patched
  /// Cosines of the writes, (writes × writes); none if one of the two is 0.
  std::vector<std::optional<double>> writeCosines;
  std::string noLens; ///< why no direction could be read through the head; otherwise empty
  std::vector<LeftOut> leftOut;
};

/// Wall-clock seconds.
struct InspectTimes {
  double tokens = 0, writes = 0, leftOut = 0;
};

struct Inspection {
  std::vector<int64_t> tokens; ///< the given ones and the generated
  int64_t given = 0;           ///< how many were given
  bool hasHead = true;
  std::vector<TokenInspection> patches; ///< of positions 1, 2, …; of an encoder only the last
  SubjectInspection subject;
  InspectTimes times;
};

/// Examines the patches of a request. The cost, for n tokens before the subject, L layers and p
/// parts, is n patches in one pass; L forwards of one token; p patches, and p n / 2 tokens of
/// prefill (p n in an encoder, whose subject must be its last token). Errors: those of
/// checkRequest; a subject that is not one of the tokens or has no context; tokens to be generated
/// by a model without a head.
llvm::Expected<Inspection> inspect(Executor &executor, const Program &program, PatchNorms &norms,
                                   const InspectRequest &request);

} // namespace ctxc

#endif // CTXC_INSPECT_INSPECT_H
