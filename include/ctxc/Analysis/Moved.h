//===- Moved.h - which values of a block a patch may move ------------------===//
#ifndef CTXC_ANALYSIS_MOVED_H
#define CTXC_ANALYSIS_MOVED_H

#include "ctxc/Analysis/Sites.h"

namespace ctxc {

/// Which values of a block a patch may move.
class Moved {
public:
  Moved(const BlockGraph &graph, const Sites &sites);

  bool moves(mlir::Value value) const { return moved.count(value) != 0; }
  /// Whether a patch may change `operand` of `op`; it may not change the contextual part's
  /// own parameters.
  bool moves(mlir::Operation *op, mlir::Value operand) const;
  /// The parameters that patches may change, each name once, without those that the contextual part
  /// uses as well.
  llvm::SmallVector<xf::ParamOp> parameters() const;

private:
  bool isOwn(mlir::Operation *op) const;
  const BlockGraph &graph;
  const Sites &sites;
  llvm::DenseSet<mlir::Value> moved;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_MOVED_H
