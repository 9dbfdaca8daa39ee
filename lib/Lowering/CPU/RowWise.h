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
    mlir::Value view; ///< a view of the root
    bool isOwnGroup;  ///< whether the group is its own, if the second loop goes over groups
  };
  llvm::SmallVector<Access> accesses;
};

/// The accesses of `op`; none where `op` does not work row by row.
std::optional<RowWise> rowWise(mlir::Operation &op);

/// Whether `next` may join the ops of `row` in one loop over the rows.
bool mayJoin(llvm::ArrayRef<RowWise> row, const RowWise &next);

/// The loops over groups of heads within attention's rows.
struct Groups {
  int64_t count;
  mlir::Value slots; ///< how many slots a row may see (index)
  int64_t size;      ///< elements of a row of queries
};

/// The groups that the second loops of all ops in `row` go over; none where these loops are not
/// over groups or an op reads another group than its own.
std::optional<Groups> groupsOf(llvm::ArrayRef<RowWise> row, mlir::OpBuilder &b);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROWWISE_H
