//===- ModelVerdict.h - the verdict on a model as a whole ------------------===//
//
// Layers that can each be patched make a model that can be only where the context reaches the
// logits through them alone (Theorem 2). The verdict on the model says which.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_MODELVERDICT_H
#define CTXC_PLANNING_MODELVERDICT_H

#include "ctxc/Planning/ModelCheck.h"

namespace ctxc {

struct ModelVerdict {
  xf::ModelOp model;
  /// Controllable where every layer from the start layer on is, and nothing passes them by;
  /// OutputOnly where a layer is that. Else Undecided, and never Rejected: where a layer has no
  /// patch, or the context goes past the layers, other patches may serve.
  VerdictKind kind = VerdictKind::Undecided;
  /// How the context reaches the logits past the patched layers, an entry for each op where it
  /// enters. What is wrong with layers is said by their own verdicts.
  std::vector<Finding> causes;

  bool isSuccess() const {
    return kind == VerdictKind::Controllable || kind == VerdictKind::OutputOnly;
  }
};

/// The verdict on the module's model, whose layers from `startLayer` on have the verdicts of
/// `groups`. None where the module has no model.
std::optional<ModelVerdict> judgeModel(mlir::ModuleOp module, llvm::ArrayRef<VerdictGroup> groups,
                                       unsigned startLayer);

/// Emits the causes as errors at their places. Fails where there are any.
mlir::LogicalResult emitVerdict(const ModelVerdict &verdict);

} // namespace ctxc

#endif // CTXC_PLANNING_MODELVERDICT_H
