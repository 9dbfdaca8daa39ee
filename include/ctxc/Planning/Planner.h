//===- Planner.h - the verdict on a block, and its plan --------------------===//
//
// The problem is a block with its bindings; `planBlock` solves it for the given objective,
// `enumeratePlans` lists all plans, and `checkPlan` checks any plan, no matter how it was found.
//
// The paper's rule:
//   F: the first assignable matrix on every path from the context to what G reads (Gemma, Llama:
//      gate and up; GPT-2: c_fc; parallel: none); if some path has no matrix, the minimum cut.
//   G: the assignable op nearest to the output (Gemma: the post-norm's scale, with
//      W_down before the norm where the update is not naive; Llama, Falcon:
//      W_down; GPT-2: the outer bias).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_PLANNER_H
#define CTXC_PLANNING_PLANNER_H

#include "ctxc/Analysis/InputSources.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/BlockPlan.h"
#include "ctxc/Planning/PlanCost.h"
#include "ctxc/Planning/RuleIds.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <functional>

namespace ctxc {

enum class VerdictKind {
  Controllable, ///< Theorem 3: f input-controllable, g output-controllable
  OutputOnly,   ///< only g is: exact, but the MLP's internals differ
  Rejected,     ///< no patch can exist: a counterexample is known, and usually a rule says why;
                ///< without a Refutation, the rule decides
  Undecided     ///< neither is shown
};
llvm::StringRef stringify(VerdictKind kind);

/// A remark at an op, or at the block if `op` is null.
struct Remark {
  mlir::Operation *op;
  std::string message;
};

/// Something that a verdict found, at its op, or at the block if `op` is null.
struct Finding {
  mlir::Operation *op;
  std::string message;
  llvm::StringRef rule;           ///< one of RuleIds.h
  std::vector<Remark> notes = {}; ///< details: the bound's derivation, the witness path
  std::string advice = "";        ///< a way out, or empty
};

/// The answer for one block under one set of bindings.
struct Verdict {
  VerdictKind kind = VerdictKind::Undecided;

  /// The plan, for Controllable and OutputOnly; empty if no op of the block reads the context, so
  /// that there is nothing to absorb.
  BlockPlan plan;

  /// For Rejected and Undecided: what is wrong, at its op, the main cause first.
  std::vector<Finding> causes;
  /// For Controllable and OutputOnly: a remark on the plan, or why there is nothing to absorb; may
  /// be empty.
  std::string remark;
  /// If a bound rejects the block: how far a patch can move the output, in the L2 norm, without the
  /// symbolic factors that `causes` names.
  std::optional<double> bound;

  bool isSuccess() const {
    return kind == VerdictKind::Controllable || kind == VerdictKind::OutputOnly;
  }
};

/// How a plan is chosen among all plans of a block.
enum class Objective {
  Default,          ///< the paper's, unless it is fragile and another is not
  Paper,            ///< the paper's rule
  FewestParameters, ///< the fewest numbers to store; fragile only if every plan is
  NoDivision,       ///< the fewest divisions entry by entry, then the fewest by a vector's length
  LeastNorm,        ///< the smallest ‖Δ‖, measured (PlanMeasure)
  LeastDrift        ///< the least change of the block on other tokens, measured
};
llvm::StringRef stringify(Objective objective);
/// None if `name` is not one of default, paper, fewest-parameters, no-division, least-norm and
/// least-drift.
std::optional<Objective> parseObjective(llvm::StringRef name);

/// A plan, the verdict that it gives, and its cost.
struct PlanCandidate {
  BlockPlan plan;
  bool outputOnly = false;
  PlanCost cost = {};
  /// If the default objective chose this output-only plan although the paper's plan keeps the MLP's
  /// internals: why the paper's plan is fragile.
  std::string avoided = "";
};

struct PlanOptions;

/// Measures the norm and the drift of a candidate's patch (PlanCost), on activations of its choice.
/// Fails if it cannot.
using PlanMeasure =
    std::function<mlir::LogicalResult(xf::BlockOp, const PlanOptions &, PlanCandidate &)>;

/// What a search for a counterexample found: weights and a context for which no patch is exact.
struct Refuted {
  /// The least error of any patch on the counterexample; none if no counterexample was found.
  std::optional<double> leastError;
  /// The sizes of the block, if the counterexample is for other sizes; the reason, if none was
  /// found; otherwise empty.
  std::string words;
};

/// Searches for a counterexample to a block that `rule` rejects. `rule` is empty for a block that
/// no rule decides.
using Refutation = std::function<Refuted(xf::BlockOp, const PlanOptions &, llvm::StringRef rule)>;

/// Tests numerically whether a plan of a block is exact. Returns in words what shows that it is
/// not; empty if the plan is exact, or if it cannot be tested.
using Confirmation =
    std::function<std::string(xf::BlockOp, const PlanOptions &, const PlanCandidate &)>;

struct PlanOptions {
  /// The block's inputs that depend on the context, because layers below run unpatched, or because
  /// the model's body reads the context between the layers.
  InputSources inputsAreSources = {};
  /// The update of a post-norm scale; naive patches only the scale.
  patch::UpdateKind update = patch::UpdateKind::least;
  SiteScope scope = SiteScope::MLP;
  /// How a mixture's experts share the change of its output.
  xf::Split split = xf::Split::Even;
  Objective objective = Objective::Default;
  /// If not empty: the plan patches exactly these parameters of the block, and `objective` chooses
  /// among such plans. Names that the block lacks are ignored.
  llvm::SmallVector<std::string> parameters;
  /// Needed by LeastNorm and LeastDrift.
  PlanMeasure measure;
  /// The layer whose settings and stored tensors the block runs with; null: the block's own.
  xf::LayerOp layer = {};
  /// If set: called before a block is called rejected or undecided. The block is rejected only if
  /// it finds a counterexample.
  Refutation refute;
  /// If set: called for each plan. A plan that it shows not to be exact is not used.
  Confirmation confirm;
  Bindings bindings;
};

/// The verdict on `block`, with the plan that the options choose, if there is one. Emits no
/// diagnostics.
Verdict planBlock(xf::BlockOp block, const PlanOptions &options = {});

/// The plans of `block` under `options.update`, `scope` and `bindings`: every choice of G (and of
/// the chain to its goal) with every minimal F, and with no F if only the output is controlled. The
/// paper's plan comes first; the others are ordered by how many numbers a patch stores. Plans that
/// patch the same parameters are listed once. At most `limit` plans are returned, out of at most a
/// few thousand choices.
std::vector<PlanCandidate> enumeratePlans(xf::BlockOp block, const PlanOptions &options,
                                          unsigned limit = 64);

/// Checks that `plan` is exact for `block`, no matter how it was found:
///   P1 every op of F, G and the norm matrices is an assignable site, none of them twice;
///   P2 each chain is connected and solvable, and reads nothing else that its G reaches;
///      the outputs can be solved one after the other;
///   P3 each chain ends in its goal;
///   P4 every path from the context, or from a patch of G, to an output crosses F or a
///      goal, and F reads nothing that is patched for the output;
///   P5 unless `outputOnly`, so does every path from the context to what G reads;
///   P6 a norm matrix feeds an RMS norm that feeds only its G.
/// On the first condition that does not hold, emits an error at the op concerned and fails.
mlir::LogicalResult checkPlan(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options,
                              bool outputOnly);

} // namespace ctxc

#endif // CTXC_PLANNING_PLANNER_H
