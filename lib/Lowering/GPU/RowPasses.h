// How the ops of a group follow each other in its block: where threads must wait for each other,
// and which ops are one pass over memory.
#ifndef CTXC_LIB_LOWERING_GPU_ROWPASSES_H
#define CTXC_LIB_LOWERING_GPU_ROWPASSES_H

#include "lib/Lowering/GPU/Steps.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc::gpu_lowering {

/// Tells whether a barrier is needed before an op: it reads or writes what another op of the block
/// has written since the last barrier, or writes what another op has read.
class Hazards {
public:
  bool meets(const RowOp &row) {
    bool meet = row.support && !all.empty();
    for (mlir::Value root : row.roots()) {
      bool writesIt = row.writes(root);
      meet |= written.contains(root) || (writesIt && all.contains(root));
    }
    if (meet) {
      all.clear();
      written.clear();
    }
    for (mlir::Value root : row.roots()) {
      all.insert(root);
      if (row.writes(root))
        written.insert(root);
    }
    return meet;
  }

  /// Every thread of the block has passed barriers, after which only the result of `row` was
  /// written.
  void passed(const RowOp &row) {
    mlir::Value result = row.accesses.back()->view.root;
    all = {result};
    written = {result};
  }

private:
  llvm::DenseSet<mlir::Value> all, written;
};

/// An elementwise op and the reduction of its result: a thread reduces the numbers that it has just
/// computed. Of softmax, these are the scores and their largest, and the powers and their sum.
struct ReducedPass {
  const RowOp *map, *fill, *reduction; ///< the fill sets the value that the reduction starts from
};

/// The pass that the first of `ops` begins, where it and the next two ops are one. `outer` is how
/// many of the loops are divided among blocks.
inline std::optional<ReducedPass> passOf(llvm::ArrayRef<RowOp> ops, size_t outer) {
  if (ops.size() < 3)
    return std::nullopt;
  const RowOp &map = ops[0], &fill = ops[1], &sum = ops[2];
  auto isSame = [](const std::optional<Access> &a, const std::optional<Access> &b, size_t loops) {
    return a && b && a->view.root == b->view.root && a->offset == b->offset &&
           llvm::ArrayRef(a->steps).take_front(loops) == llvm::ArrayRef(b->steps).take_front(loops);
  };
  if (!mlir::isa<mlir::linalg::GenericOp>(map.op) || !mlir::isa<mlir::linalg::FillOp>(fill.op) ||
      !mlir::isa<mlir::linalg::GenericOp>(sum.op) || map.hasReduction() ||
      map.accesses.size() != size_t(map.inputs) + 1 || sum.accesses.size() != 2 ||
      fill.loops.size() != outer || map.loops.size() != outer + 1 || sum.loops != map.loops ||
      llvm::count(sum.isReduction, true) != 1 || !sum.isReduction.back())
    return std::nullopt;
  if (!isSame(sum.accesses[0], map.accesses.back(), outer + 1) ||
      !isSame(sum.accesses[1], fill.accesses.back(), outer))
    return std::nullopt;
  return ReducedPass{&map, &fill, &sum};
}

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_ROWPASSES_H
