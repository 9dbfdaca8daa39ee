//===- ModelVerdict.h - the verdict on a model as a whole ------------------===//
//
// A model whose layers can all be patched can be patched as a whole only if the context reaches the
// logits through no other way (Theorem 2). The verdict on the model says whether it does.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_MODELVERDICT_H
#define CTXC_PLANNING_MODELVERDICT_H

#include "ctxc/Planning/ModelCheck.h"

namespace ctxc {

struct ModelVerdict {
  xf::ModelOp model;
  /// Controllable if every layer from the start layer on is controllable and no context goes past
  /// the layers; OutputOnly if one of these layers is output-only instead. Otherwise Undecided, and
  /// never Rejected: if a layer has no patch, or the context goes past the layers, patches of other
  /// layers may still suffice.
  VerdictKind kind = VerdictKind::Undecided;
  /// How the context reaches the logits past the patched layers, with an entry for each op where it
  /// enters. The layers' own verdicts say what is wrong with layers.
  std::vector<Finding> causes;

  bool isSuccess() const {
    return kind == VerdictKind::Controllable || kind == VerdictKind::OutputOnly;
  }
};

/// The verdict on the module's model, whose layers from `startLayer` on have the verdicts of
/// `groups`. None if the module has no model.
std::optional<ModelVerdict> judgeModel(mlir::ModuleOp module, llvm::ArrayRef<VerdictGroup> groups,
                                       unsigned startLayer);

/// Emits the causes as errors at their locations. Fails if there are causes.
mlir::LogicalResult emitVerdict(const ModelVerdict &verdict);

} // namespace ctxc

#endif // CTXC_PLANNING_MODELVERDICT_H
