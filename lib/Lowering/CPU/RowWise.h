// Ops on memrefs that go over rows, and which of them make one loop.
#ifndef CTXC_LIB_LOWERING_ROWWISE_H
#define CTXC_LIB_LOWERING_ROWWISE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace ctxc {

/// What one op does to memory, as far as rows are concerned.
struct RowWise {
  mlir::Operation *op = nullptr; ///< of linalg, or a loop with kernel.row_loop
  mlir::Value count;             ///< of rows
  bool isKnown = true;           ///< whether `accesses` are all
  struct Access {
    mlir::Value root;
    bool isOwnRow, isWrite;
    mlir::Value view; ///< of the root
    bool isOwnGroup;  ///< where the second loop is taken for one over groups
  };
  llvm::SmallVector<Access> accesses;
};

/// None where `op` is no such op.
std::optional<RowWise> rowWise(mlir::Operation &op);

/// Whether `next` may follow `row` in one loop over the rows.
bool mayJoin(llvm::ArrayRef<RowWise> row, const RowWise &next);

/// The loops over groups of heads within attention's rows.
struct Groups {
  int64_t count;
  mlir::Value slots; ///< that a row may see (index)
  int64_t size;      ///< numbers of a row of queries
};

/// What the second loops of all in `row` go over, if it is groups, and each in itself.
std::optional<Groups> groupsOf(llvm::ArrayRef<RowWise> row, mlir::OpBuilder &b);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWWISE_H
