// Memrefs on which a kernel works row by row: their first dimension is the rows of a call.
#ifndef CTXC_LIB_LOWERING_ROWS_H
#define CTXC_LIB_LOWERING_ROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringRef.h"

namespace ctxc {

/// Where a memref comes from, and whether its rows are the first rows of that.
struct Origin {
  mlir::Value root; ///< null: not known
  bool sameRows = true;
};
Origin originOf(mlir::Value memref);

/// How many rows the memref has, as a value of the kernel (index); null where that is not known.
mlir::Value rowsOf(mlir::Value memref);

/// What fills `y` with zeros for nobody but `op`, which adds to them; null where there is no such
/// op.
mlir::linalg::FillOp zerosFor(mlir::Operation *op, mlir::Value y);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWS_H
