// Finds ops on memrefs that work row by row, and decides which of them can share one loop over
// rows.
#ifndef CTXC_LIB_LOWERING_ROWWISE_H
#define CTXC_LIB_LOWERING_ROWWISE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace ctxc {

/// The memory accesses of one op, as far as rows are concerned.
struct RowWise {
  mlir::Operation *op = nullptr; ///< a linalg op, or a loop with kernel.row_loop
  mlir::Value count;             ///< the number of rows
  bool isKnown = true;           ///< whether `accesses` lists all accesses
  struct Access {
    mlir::Value root;
    bool isOwnRow, isWrite;
  };
  llvm::SmallVector<Access> accesses;
};

/// The accesses of `op`; none where `op` does not work row by row.
std::optional<RowWise> rowWise(mlir::Operation &op);

/// Whether `next` may join the ops of `row` in one loop over the rows.
bool mayJoin(llvm::ArrayRef<RowWise> row, const RowWise &next);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWWISE_H
