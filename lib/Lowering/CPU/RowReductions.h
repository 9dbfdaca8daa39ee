// Sums and maxima along the last dimension, as loops over vectors.
#ifndef CTXC_LIB_LOWERING_ROWREDUCTIONS_H
#define CTXC_LIB_LOWERING_ROWREDUCTIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Loops that compute `op`, on memrefs, before the builder's place; the outermost is returned. Null
/// where `op` is no sum or maximum along its last dimension, which is then a remark if it is one
/// along others.
mlir::scf::ForOp reductionToLoops(mlir::OpBuilder &b, mlir::linalg::LinalgOp op);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWREDUCTIONS_H
