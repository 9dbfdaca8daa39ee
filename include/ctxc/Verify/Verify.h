//===- Verify.h - is the patched model without context the same model? ----===//
//
// Algorithm 1 ("multi-layer"), token by token, and the check of its result.
// For each generated token three runs are compared:
//
//   full      original weights, the whole context;
//   patched   the token's patch, the kept tokens only: an ordinary forward that
//             sees nothing of the full run but the patch;
//   control   original weights, the kept tokens only.
//
// In a bidirectional model (an encoder) the context sees the token as well: the full run then takes
// all tokens at once, and the last token is removed and run again beside the reduced run. This
// leaves the full run's state as it was.
//
// It uses only Executor, so that the same code verifies the compiled kernels and the reference.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_VERIFY_H
#define CTXC_VERIFY_VERIFY_H

#include "ctxc/Numerics/Metrics.h"
#include "ctxc/Numerics/Pooling.h"
#include "ctxc/Program/Executor.h"
#include "ctxc/Verify/AllowedError.h"
#include "ctxc/Verify/PatchNorms.h"
#include "ctxc/Verify/Replay.h"
#include "ctxc/Verify/Trace.h"
#include <limits>
#include <optional>

namespace ctxc {

/// Sees the logits of a step's full, patched and control run, one for each token of the
/// vocabulary.
using LogitsObserver = std::function<void(
    llvm::ArrayRef<double> full, llvm::ArrayRef<double> patched, llvm::ArrayRef<double> control)>;

/// The input of every kind of verification.
struct RunRequest {
  /// The context, then the last token; at least two. Token i is at position i. Embeddings may stand
  /// in place of tokens.
  std::vector<Input> tokens;
  /// Ascending positions of the context that the reduced run keeps; they are
  /// run unpatched, once. All before the last token.
  std::vector<int64_t> kept;
  int64_t startLayer = 0;   ///< layers before it stay unpatched
  bool materialize = false; ///< patches are added to the weights, in their type
  /// Collects comparisons of the layers of two runs; null: layers are not compared.
  Trace *trace = nullptr;
  LogitsObserver logits; ///< null: nobody needs the logits themselves
  /// Only for makePatch: sees the layers' outputs of the full run; null: nobody does.
  StreamSizes *sizes = nullptr;
  /// Only for verifyEach and makePatches: ascending positions from 1 on, whose tokens are patched,
  /// each with the tokens before it as context. The reduced run of each keeps the positions of
  /// `kept` that are before it.
  std::vector<int64_t> positions = {};
  /// Only for tokens that are generated: after one of these there is no other.
  std::vector<int64_t> stops = {};
  /// False: there is no control run; a step's `control` is not set, and the logits observer gets
  /// no control logits.
  bool control = true;
  /// Of a model without a head, whose runs give the last hidden state in the place of logits: they
  /// are compared as vectors, and predict no tokens.
  bool headless = false;
  /// The roundings in which the full and the patched run differ. The patch's is the rounding of the
  /// weights' type if patches are materialized, or of a stored patch if that is coarser than
  /// float32; both are bfloat16's if the pass that makes many patches rounds.
  Roundoffs roundoffs = {};
};

/// Wall-clock seconds of each part, summed over tokens, and how many tokens these are.
struct RunTimes {
  double prefill = 0; ///< full run of the context, and the kept tokens
  double patch = 0;   ///< full and reduced run of a token together
  double verify = 0;  ///< the separate patched run
  double control = 0; ///< the unpatched run without context
  struct {
    int64_t prefill = 0, patch = 0, verify = 0, control = 0;
  } tokens;
};

/// One token: the logits for the next one in three runs.
struct VerifyStep {
  int64_t token = 0;    ///< the token that was run; −1: an embedding in its place
  int64_t position = 0; ///< its absolute position
  int64_t next = 0;     ///< the full run's choice, which the next step runs; −1 without a head
  TokenMetrics patched; ///< the patched run against the full run
  /// What roundings allow `patched.linf` to be (AllowedError.h).
  double allowedLinf = std::numeric_limits<double>::infinity();
  /// The unpatched run without context against the full run; not finite if it was not requested.
  TokenMetrics control;
  /// max |·| between the logits of the separate patched run and those of the
  /// reduced run in which the patch was made; none for a stored patch.
  std::optional<double> fusedLinf;
  /// Of a model without a head: of the run's last hidden state and the full run's.
  double patchedCosine = 1, controlCosine = 1;
  /// One for each layer. For a stored patch, only the norms are known.
  std::vector<LayerReport> layers;
  PatchNorm norm; ///< of all layers' patches together
};

/// The vector of the whole text, where the last token's comes from each of the three runs and those
/// of the tokens before it from the full run.
struct PooledText {
  Pooling pooling;
  int64_t tokens = 0;
  std::vector<double> full, patched, control;
  double patchedLinf = 0, controlLinf = 0; ///< from the full run's
  double patchedCosine = 1, controlCosine = 1;
};

struct VerifyResult {
  std::vector<VerifyStep> steps;
  bool ended = false; ///< the last step's choice is one of the request's `stops`
  RunTimes times;
  std::optional<PooledText> pooled;
};

/// Pools the last hidden states of all tokens: of a model without a head.
llvm::Expected<PooledText> poolText(Executor &executor, const RunRequest &request,
                                    const Pooling &pooling, llvm::ArrayRef<double> patched,
                                    llvm::ArrayRef<double> control);

/// Called after each step, in order: for output while tokens are verified.
using StepObserver = llvm::function_ref<void(const VerifyStep &)>;

/// Checks that `request` can be run for `count` tokens: there are at least two tokens, each in the
/// executor's vocabulary or an embedding of its width; kept positions ascend and are before the
/// last token; startLayer is one of its layers; positions to patch ascend, from 1 to the last, and
/// are not combined with materialize. In a bidirectional model, only the last token may be run
/// without the context, and no kept or later token beside it: the others would see it, and change
/// with its patch. Reports all problems together.
llvm::Error checkRequest(const RunRequest &request, const Executor &executor, int64_t count = 1);

/// Generates up to `count` tokens greedily with the full run, and verifies each; the last one may
/// be one of `request.stops`. A disagreement is recorded, and generation goes on with the full
/// run's token, as in the paper.
llvm::Expected<VerifyResult> verify(Executor &executor, const RunRequest &request, int64_t count,
                                    PatchNorms &norms, StepObserver observe);

/// Verifies a patch that came from elsewhere for the last of the tokens.
llvm::Expected<VerifyResult> verifyPatch(Executor &executor, const RunRequest &request,
                                         const Patch &patch, PatchNorms &norms);

/// A patch that came from elsewhere, of the token at a position.
using PatchSource = llvm::function_ref<llvm::Expected<Patch>(int64_t position)>;

/// Verifies the patch of each of `request.positions`, made in one pass over the tokens, or given by
/// `stored`, if that is set. Each is checked separately: by a run of the token with its patch after
/// only the kept tokens before it, and by such a run without the patch.
llvm::Expected<VerifyResult> verifyEach(Executor &executor, const RunRequest &request,
                                        PatchNorms &norms, StepObserver observe,
                                        PatchSource stored = nullptr);

/// The patch of each of `request.positions`, made in one pass over the tokens and given to `sink`
/// in order (`ctxc patch --positions`).
llvm::Error makePatches(Executor &executor, const RunRequest &request, RunTimes &times,
                        PatchSink sink);

/// The patch of the last token, with the tokens before it as context (`ctxc patch`).
llvm::Expected<PatchStep> makePatch(Executor &executor, const RunRequest &request, RunTimes &times);

/// A summary of all steps.
struct VerifySummary {
  int64_t steps = 0, matches = 0, controlMatches = 0;
  double worstLinf = 0, worstTotalVariation = 0;
  double leastControlLinf = 0, worstControlLinf = 0;
  std::optional<double> worstFusedLinf;
  /// How many steps have a larger L∞ than roundings allow; and, for the step that exceeds the
  /// allowed L∞ most or comes nearest to it, the L∞ that was found and the one that was allowed.
  int64_t beyond = 0;
  double nearestLinf = 0, nearestAllowed = std::numeric_limits<double>::infinity();
  double largestMatrixNorm = 0, largestVectorNorm = 0;         ///< of a step, all layers
  double largestMatrixRelative = 0, largestVectorRelative = 0; ///< of one layer
  PatchNorm largestPatch;        ///< of the step that has the largest patch of one parameter
  double largestReplayError = 0; ///< of one layer
  int64_t harmless = 0, harmful = 0;
  bool finite = true;

  /// Every token of the patched run is the full run's, the logits differ only by roundings, and
  /// every patch is one.
  bool verified() const {
    return steps > 0 && matches == steps && finite && beyond == 0 &&
           whyTooLarge(largestPatch).empty();
  }
};
VerifySummary summarize(llvm::ArrayRef<VerifyStep> steps);

/// The largest of all steps, in a program whose activations have a type.
ReplayError replayErrorIn(llvm::StringRef type, llvm::ArrayRef<VerifyStep> steps,
                          const std::optional<Sink> &sink);
/// That of a patch whose making `sizes` have seen.
ReplayError replayErrorIn(llvm::StringRef type, const PatchStep &step, const StreamSizes &sizes,
                          const std::optional<Sink> &sink);

} // namespace ctxc

#endif // CTXC_VERIFY_VERIFY_H
