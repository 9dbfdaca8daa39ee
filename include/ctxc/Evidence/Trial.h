//===- Trial.h - a numeric test of a plan of one block ---------------------===//
//
// Tests Theorem 1 for one block, in the float64 reference: the full run of a token after a small
// context; the dual block, which forms the patch; and then, in a separate run that sees only the
// patch of the full run, the applied block without the context. Its outputs must be the full run's.
// Use it to show that a plan is exact, and to rank plans by numbers that only a run can give
// (norms, drift).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EVIDENCE_TRIAL_H
#define CTXC_EVIDENCE_TRIAL_H

#include "ctxc/Evidence/Sample.h"
#include "ctxc/Planning/Planner.h"
#include "ctxc/Program/Weights.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

struct TrialOptions {
  /// The seed of the activations, and of the weights if none are given.
  uint64_t seed = 1;
  /// The weights, or null for random ones; and the layer whose names and settings
  /// apply, or null for the block's own. Both must outlive the call.
  Weights *weights = nullptr;
  xf::LayerOp layer = {};
  /// The activations, or null for random ones of the sizes below.
  const Sample *sample = nullptr;
  int64_t context = 4, others = 8;
  InputSources inputsAreSources = {};
  patch::UpdateKind update = patch::UpdateKind::least;
  /// Whether large matrices of random weights are mostly zero, and are stored nowhere, so that a
  /// block of any size is tried at once. They are as good as any others to show that a function
  /// which is analytic in the weights is not zero everywhere.
  bool sparse = false;
};

/// The result of a trial.
enum class TrialOutcome {
  Exact,
  Wrong,         ///< the outputs differ by more than roundings make
  IllConditioned ///< numbers so large that roundings hide whether they differ, or a patch so large
                 ///< that its parameter is lost in it
};

/// What one trial measured. Norms are Frobenius norms (of u vᵀ: ‖u‖‖v‖).
struct Trial {
  double error = 0;         ///< max |T' − T_C| over the entries of all outputs, patched
  double control = 0;       ///< max |T − T_C|: the same without the patch
  double largestOutput = 0; ///< max |T_C|

  double patchNorm = 0;    ///< ‖Δ‖ over all patched parameters together
  double relativeNorm = 0; ///< the largest ‖Δp‖ / ‖p‖ of one parameter; of one that is 0, ‖Δp‖
  double largestValue = 0; ///< the largest |number| in the dual block: every activation,
                           ///< quotient and factor of both runs and of the patch
  /// How far the patched block's output moves on tokens that the patch was not made for: the
  /// mean of ‖T' − T‖ / ‖T‖ over the sample's others, each without the context.
  double drift = 0;

  /// Whether a norm without epsilon divides a rounding by itself, so that what follows is noise,
  /// however equal it is in two runs.
  bool normsRounding = false;

  int64_t patched = 0;               ///< parameters
  int64_t harmless = 0, harmful = 0; ///< zero divisors replaced by 1 (PatchOps.td)

  /// The factor by which rounding errors of the patch's arithmetic can grow: at least 1.
  double conditioning() const;
  /// The allowed error: 1e-9 · min(conditioning, 1e6); but if that is more than the roundings of
  /// the outputs, at most a thousandth of the error without the patch.
  double tolerance() const;
  TrialOutcome outcome() const;
  bool isExact() const { return outcome() == TrialOutcome::Exact; }
  /// Why the outcome is not Exact, with the numbers; empty if it is Exact.
  std::string whyNotExact() const;
};

/// Tries `plan`, which must be one of `block`'s plans; the block may stand alone or in a module. If
/// the plan patches nothing, error and control are equal. Builds the dual and the applied block
/// beside `block` and erases them again. Errors: an op without a meaning in the reference, missing
/// weights or settings, a plan that cannot be built (its diagnostics are emitted), a number that is
/// not finite, not enough memory (which is checked beforehand).
llvm::Expected<Trial> tryPlan(xf::BlockOp block, const BlockPlan &plan,
                              const TrialOptions &options);

/// Tries at the token of `other` the patch that `options.sample`'s token needs, which is exact for
/// that one: the error, and the error without the patch; none if it is not exact. Errors: as
/// tryPlan.
struct OtherToken {
  double error = 0, control = 0;
};
llvm::Expected<std::optional<OtherToken>> tryAtOther(xf::BlockOp block, const BlockPlan &plan,
                                                     const Sample &other,
                                                     const TrialOptions &options);

/// Why there is not enough memory for such a trial; empty if there is.
std::string lackOfMemory(xf::BlockOp block, const TrialOptions &options);

/// A Confirmation (Planner.h) by trials on random weights and activations, at the block's own
/// sizes; of a block with more than 200,000 numbers, large matrices are sparse. A plan of a block
/// that the reference cannot run is not contradicted.
std::string confirmByTrial(xf::BlockOp block, const PlanOptions &options,
                           const PlanCandidate &candidate);

/// A Confirmation that calls `confirm` once for each plan, and remembers the answers.
Confirmation remembered(Confirmation confirm);

/// All figures, by their names.
llvm::json::Object trialJson(const Trial &trial);
/// "error 3.1e-15; 0.82 without the patch; …", one line of at most 90 columns.
std::string trialText(const Trial &trial);

} // namespace ctxc

#endif // CTXC_EVIDENCE_TRIAL_H
