// Sums and maxima along the last dimension as vector loops.
#ifndef CTXC_LIB_LOWERING_ROWREDUCTIONS_H
#define CTXC_LIB_LOWERING_ROWREDUCTIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Emits loops that compute `op`, on memrefs, before the insertion point, and returns the outermost
/// one. Returns null where `op` is not a sum or maximum along its last dimension; a reduction along
/// other dimensions gets a remark.
mlir::scf::ForOp reductionToLoops(mlir::OpBuilder &b, mlir::linalg::LinalgOp op);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWREDUCTIONS_H
