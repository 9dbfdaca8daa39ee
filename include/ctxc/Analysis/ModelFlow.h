//===- ModelFlow.h - which values of a model depend on the context ---------===//
//
// Theorem 2 ("multi-layer") needs more than layers that can be patched: nothing else may bring the
// context to the logits. This analysis follows the context through the model's body, where every
// layer from `startLayer` on gives its full run's outputs, because its patch ensures this:
//
//   a layer from startLayer on   its outputs are equal in both runs
//   a layer before it            an output depends where its block's own flow says so
//   an op that reads the context its results depend (ContextualOpInterface)
//   any other op                 its results depend where an operand does
//
// A patched layer with an input that depends on the context must absorb this too (`sources`). Valid
// while the model is unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_MODELFLOW_H
#define CTXC_ANALYSIS_MODELFLOW_H

#include "ctxc/Analysis/InputSources.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc {

class ModelFlow {
public:
  ModelFlow(xf::ModelOp model, unsigned startLayer);

  bool depends(mlir::Value value) const { return dependent.contains(value); }
  /// The inputs of the layer that depend on the context.
  InputSources sources(xf::LayerOp layer) const;
  /// Whether the layer runs unpatched.
  bool isUnpatched(xf::LayerOp layer) const { return unpatched.contains(layer); }
  /// Its number among the model's layers, from 0.
  unsigned numberOf(xf::LayerOp layer) const { return numbers.lookup(layer); }

  mlir::Value logits() const { return body.getTerminator()->getOperand(0); }
  /// The ops from which context reaches the logits past the patched layers, in order: contextual
  /// ops of the body, and unpatched layers that contain some. Empty if the logits are equal in both
  /// runs.
  llvm::SmallVector<mlir::Operation *> sourcesOfLogits() const;
  /// A path of values by which the context goes from `source`, one of sourcesOfLogits, to the
  /// logits: from a result of `source` to the logits, each read by the op that produces the next.
  llvm::SmallVector<mlir::Value> path(mlir::Operation *source) const;

private:
  /// How the outputs of an unpatched layer depend.
  struct LayerFlow {
    llvm::SmallVector<llvm::SmallVector<unsigned, 2>> inputs; ///< the inputs that each output reads
    llvm::SmallVector<bool> readsContext;                     ///< for each output
  };

  static LayerFlow flowOf(xf::BlockOp block);
  /// The operands that `result` depends through, whether they depend on the context or not.
  llvm::SmallVector<mlir::Value> feeding(mlir::OpResult result) const;
  /// Whether the context enters at the op of `result`.
  bool enters(mlir::OpResult result) const;

  mlir::Block &body;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, LayerFlow> unpatched;
  llvm::DenseSet<mlir::Value> dependent;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_MODELFLOW_H
