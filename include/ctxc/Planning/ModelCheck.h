//===- ModelCheck.h - verdicts on every layer of a model -------------------===//
//
// The verdict on a block depends only on its structure, on a layer's bindings (frozen and shared
// parameters) and on the numbers of the layer's settings: it is found once for each distinct three.
// Layers whose settings differ in numbers, and whose verdicts came out the same, are told together.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_MODELCHECK_H
#define CTXC_PLANNING_MODELCHECK_H

#include "ctxc/Planning/Planner.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <vector>

namespace ctxc {

struct ModelOptions {
  /// Layers before this one run unpatched, so that their outputs depend on the context.
  unsigned startLayer = 0;
  patch::UpdateKind update = patch::UpdateKind::least;
  SiteScope scope = SiteScope::MLP;
  xf::Split split = xf::Split::Even;
  Objective objective = Objective::Default;
  /// If not empty: the parameters that plans must patch, by the blocks' names.
  llvm::SmallVector<std::string> parameters;
  PlanMeasure measure;
  Refutation refute;
  Confirmation confirm;
  /// Parameters frozen in every layer, by the blocks' names.
  llvm::SmallVector<std::string> frozen;
};

/// The verdict on one layer. Layers with equal blocks and bindings share one if it came out the
/// same under the settings of each, and options if their settings are equal, too.
struct LayerVerdict {
  unsigned layer = 0; ///< its number among the model's xf.layer ops, from 0
  xf::LayerOp op;     ///< null if the module has blocks but no model
  xf::BlockOp block;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const PlanOptions> options; ///< under which the verdict was found
};

/// Verdicts on the layers of the module's model from `startLayer` on, in order; if the module has
/// no model, on every block by itself. A stored parameter that two layers use, or a layer and
/// another part of the model, counts as shared.
std::vector<LayerVerdict> checkModel(mlir::ModuleOp module, const ModelOptions &options = {});

/// Layers of a group that compute the same: the numbers of their settings are equal.
struct VerdictCase {
  std::shared_ptr<const PlanOptions> options; ///< of which `layer` is the first, or null
  llvm::SmallVector<unsigned> layers;         ///< ascending
};

/// Layers that share a verdict, as in "layers 0-4, 6-10".
struct VerdictGroup {
  xf::BlockOp block;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const PlanOptions> options; ///< of the first case
  llvm::SmallVector<unsigned> layers;         ///< ascending
  llvm::SmallVector<xf::LayerOp> ops;         ///< empty if the module has no model
  /// In the order of their first layers. What is shown in numbers is shown for each.
  llvm::SmallVector<VerdictCase, 1> cases;
};

/// Groups in the order of their first layers.
std::vector<VerdictGroup> groupVerdicts(llvm::ArrayRef<LayerVerdict> verdicts);

/// The plans of the group's block (enumeratePlans), those that hold in each of its cases.
std::vector<PlanCandidate> enumeratePlans(const VerdictGroup &group);

/// "0-4, 6, 8-10"
std::string formatRanges(llvm::ArrayRef<unsigned> ascending);

/// The warnings about the group's plan, each at its op: conditions that fail on an open set of
/// activations (rule conditional-obligation), patches that other programs may not reproduce
/// (fragile-plan), and internals that differ, with the path that no patch interrupts (output-only).
/// Empty if there is no plan.
std::vector<Finding> findWarnings(const VerdictGroup &group);

/// Emits a finding on the group as a diagnostic, with its notes, the layers concerned and the way
/// out. If the finding has no op, its location is the block; it is never unknown.
void emitFinding(const VerdictGroup &group, const Finding &finding,
                 mlir::DiagnosticSeverity severity);
/// The same for a finding on a model's body.
void emitFinding(xf::ModelOp model, const Finding &finding, mlir::DiagnosticSeverity severity);

/// Emits the causes of a rejected or undecided verdict as errors, and nothing for other verdicts.
/// Fails if it emitted an error.
mlir::LogicalResult emitVerdict(const VerdictGroup &group);

} // namespace ctxc

#endif // CTXC_PLANNING_MODELCHECK_H
