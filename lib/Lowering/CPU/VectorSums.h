// The fixed order in which the lanes of a vector of partial sums are added up.
#ifndef CTXC_LIB_LOWERING_VECTORSUMS_H
#define CTXC_LIB_LOWERING_VECTORSUMS_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ctxc {

/// How many partial sums a row's reduction has; the same on all targets, so that results are the
/// same too.
constexpr int64_t rowLanes = 16;

/// Adds up the lanes of each of `sums`, vectors of one length, and returns the totals side by side.
/// In each step the second half of the lanes is added to the first half. The number of vectors is a
/// power of two, and at most the number of lanes.
mlir::Value totals(mlir::OpBuilder &b, mlir::Location loc, llvm::SmallVector<mlir::Value> sums);

/// Transposes a square of registers: as many vectors as each has lanes, a power of two. In each
/// step blocks of twice the size change places.
void transposeSquare(mlir::OpBuilder &b, mlir::Location loc,
                     llvm::SmallVectorImpl<mlir::Value> &rows);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_VECTORSUMS_H
