//===- Planner.h - the verdict on a block, and the paper's plan ------------===//
//
// The problem is a block with its bindings; `planPaper` solves it by the paper's rule; `checkPlan`
// checks any plan apart from how it was found.
//
//   F: of every path from the context to what G reads, the first assignable
//      matrix (Gemma, Llama: gate and up; GPT-2: c_fc; parallel: none); where
//      some path has no matrix, the minimum cut.
//   G: the assignable op nearest to the output (Gemma: the post-norm's scale, with
//      W_down before the norm where the update is not naive; Llama, Falcon:
//      W_down; GPT-2: the outer bias).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_PLANNER_H
#define CTXC_PLANNING_PLANNER_H

#include "ctxc/Analysis/Bindings.h"
#include "ctxc/Planning/BlockPlan.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc {

enum class VerdictKind {
  Controllable, ///< Theorem 3: f input-controllable, g output-controllable
  OutputOnly,   ///< only g is: exact, but the MLP's internals differ
  Rejected,     ///< no patch can exist: the reach of every parameter is too small
  Undecided     ///< neither is shown
};
llvm::StringRef stringify(VerdictKind kind);

/// A remark on a verdict, at an op.
struct Finding {
  mlir::Operation *op;
  std::string message;
};

/// The answer for one block under one set of bindings.
struct Verdict {
  VerdictKind kind = VerdictKind::Undecided;

  /// The plan, for Controllable and OutputOnly; its outputSite is null where
  /// nothing in the block reads the context, so that there is nothing to absorb.
  BlockPlan plan;

  /// Rejected and Undecided: what is wrong, at its op, the chief cause first.
  llvm::SmallVector<Finding> causes;
  /// Details of the cause: the bound's derivation, the witness path.
  llvm::SmallVector<Finding> notes;
  /// What to change, for Rejected and Undecided; a remark otherwise; or empty.
  std::string advice;
  /// Rejected by a bound: how far a patch can move the output, in the L2 norm,
  /// without the symbolic factors that `causes` names.
  std::optional<double> bound;

  bool isSuccess() const {
    return kind == VerdictKind::Controllable || kind == VerdictKind::OutputOnly;
  }
};

struct PlanOptions {
  /// The block's inputs depend on the context: the first patched layer where
  /// layers below it run unpatched.
  bool inputsAreSources = false;
  /// The update of a post-norm scale; naive patches the scale alone.
  patch::UpdateKind update = patch::UpdateKind::least;
  Bindings bindings;
};

/// The verdict on `block`, with the paper's plan where there is one. Emits nothing.
Verdict planPaper(xf::BlockOp block, const PlanOptions &options = {});

/// Checks that `plan` is exact for `block` apart from how it was found:
///   P1 every op of F, G and normMatrix is an assignable site, none of them twice;
///   P2 the chain is connected, solvable, and reads nothing else that G reaches;
///   P3 it ends in the output it names, or in a waist that all context passes;
///   P4 every other output that the context reaches is cut off by F, and none reads G;
///   P5 unless `outputOnly`, F meets every path from the context to what G reads;
///   P6 normMatrix feeds an RMS norm that feeds G alone.
/// Emits an error at the op concerned and fails on the first that does not hold.
mlir::LogicalResult checkPlan(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options,
                              bool outputOnly);

} // namespace ctxc

#endif // CTXC_PLANNING_PLANNER_H
