// The one order in which vectors of partial sums are added up.
#ifndef CTXC_LIB_LOWERING_VECTORSUMS_H
#define CTXC_LIB_LOWERING_VECTORSUMS_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ctxc {

/// Partial sums of a row's reduction; on all targets, so that sums are the same on all.
constexpr int64_t rowLanes = 16;

/// The sum of each of `sums`, vectors of one length, side by side: of each the second half is
/// added to the first, and so on. A power of two of them, and at most as many as they have lanes.
mlir::Value totals(mlir::OpBuilder &b, mlir::Location loc, llvm::SmallVector<mlir::Value> sums);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_VECTORSUMS_H
