// Memrefs on which a kernel works row by row: their first dimension is the rows of a call.
#ifndef CTXC_LIB_LOWERING_ROWS_H
#define CTXC_LIB_LOWERING_ROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringRef.h"

namespace ctxc {

/// Where a memref comes from, and whether its rows are the first rows of that memory.
struct Origin {
  mlir::Value root; ///< null where it is not known
  bool sameRows = true;
};
Origin originOf(mlir::Value memref);

/// Whether no op between `from` and `to`, which is behind it in the same block, changes what is in
/// `memref`.
bool staysSame(mlir::Value memref, mlir::Operation *from, mlir::Operation *to);

/// The number of rows of a memref, as an index value of the kernel; null where it is not known.
mlir::Value rowsOf(mlir::Value memref);

/// The same in any case: read from the memref where it is not known.
mlir::Value rowsOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);

/// The op that fills `y` with zeros, if only `op`, which adds to `y`, reads them; otherwise null.
mlir::linalg::FillOp zerosFor(mlir::Operation *op, mlir::Value y);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWS_H
