//===- ModelCheck.h - verdicts on every layer of a model -------------------===//
//
// The verdict on a block depends on its structure and on a layer's bindings
// (frozen and shared parameters) alone: it is found once for each distinct pair.
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
  /// Layers before this one run unpatched, so that what they make depends on the context.
  unsigned startLayer = 0;
  patch::UpdateKind update = patch::UpdateKind::least;
  SiteScope scope = SiteScope::MLP;
  xf::Split split = xf::Split::Even;
  Objective objective = Objective::Default;
  /// Where not empty: the parameters that plans must patch, by the blocks' names.
  llvm::SmallVector<std::string> parameters;
  PlanMeasure measure;
  Refutation refute;
  Confirmation confirm;
  /// Parameters frozen in every layer, by the blocks' names.
  llvm::SmallVector<std::string> frozen;
};

/// The verdict on one layer. Layers with equal blocks and bindings share one.
struct LayerVerdict {
  unsigned layer = 0; ///< its number among the model's xf.layer ops, from 0
  xf::LayerOp op;     ///< null where the module has blocks and no model
  xf::BlockOp block;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const PlanOptions> options; ///< under which the verdict was found
};

/// Verdicts on the layers of the module's model from `startLayer` on, in order; on
/// every block by itself where the module has no model. A stored parameter that
/// two layers, or a layer and the model's ends, use counts as shared.
std::vector<LayerVerdict> checkModel(mlir::ModuleOp module, const ModelOptions &options = {});

/// Layers that share a verdict, as in "layers 0-4, 6-10".
struct VerdictGroup {
  xf::BlockOp block;
  std::shared_ptr<const Verdict> verdict;
  std::shared_ptr<const PlanOptions> options;
  llvm::SmallVector<unsigned> layers; ///< ascending
  llvm::SmallVector<xf::LayerOp> ops; ///< empty where the module has no model
};

/// Groups in the order of their first layers.
std::vector<VerdictGroup> groupVerdicts(llvm::ArrayRef<LayerVerdict> verdicts);

/// "0-4, 6, 8-10"
std::string formatRanges(llvm::ArrayRef<unsigned> ascending);

/// The warnings about the group's plan, each at its op: conditions that fail on an
/// open set of activations (rule conditional-obligation), patches that other programs may not
/// reproduce (fragile-plan), and internals that differ, with the path that no patch interrupts
/// (output-only). Empty where there is no plan.
std::vector<Finding> findWarnings(const VerdictGroup &group);

/// Emits a finding on the group as a diagnostic, with its notes, the layers concerned and the
/// way out. At the block where the finding has no op; never at an unknown place.
void emitFinding(const VerdictGroup &group, const Finding &finding,
                 mlir::DiagnosticSeverity severity);
/// The same for a finding on a model's body.
void emitFinding(xf::ModelOp model, const Finding &finding, mlir::DiagnosticSeverity severity);

/// Emits the causes of a rejected or undecided verdict as errors, and nothing for the others.
/// Fails where it emitted an error.
mlir::LogicalResult emitVerdict(const VerdictGroup &group);

} // namespace ctxc

#endif // CTXC_PLANNING_MODELCHECK_H
