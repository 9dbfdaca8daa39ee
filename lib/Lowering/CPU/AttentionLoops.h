// The two products of attention as loops over register tiles.
#ifndef CTXC_LIB_LOWERING_ATTENTIONLOOPS_H
#define CTXC_LIB_LOWERING_ATTENTIONLOOPS_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// A range of slots, as indices.
struct SlotRange {
  mlir::Value from, to;
};
/// The slots of which row `row` of `rows` sees some, where `op` is causal; all slots where it is
/// not. The range begins at a multiple of rowLanes, so that a reduction has the same partial sums
/// with a window and without.
SlotRange seenSlots(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value row, mlir::Value rows,
                    mlir::Value slots);

/// Whether `op`, on memrefs, is the product of queries and keys, and its operands have a layout
/// that the loops can read.
bool isScores(mlir::linalg::LinalgOp op);

/// Emits loops that compute `op`, on memrefs, at the insertion point, and returns the outermost
/// one, which goes over rows. Returns null where `op` is not a product of attention
/// (#kernel.product).
mlir::scf::ForOp attentionToLoops(mlir::OpBuilder &b, mlir::linalg::LinalgOp op,
                                  const CpuTarget &target);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ATTENTIONLOOPS_H
