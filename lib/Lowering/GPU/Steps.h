// A bufferised kernel as the steps that a GPU launches.
//
// A contraction with a stored matrix is a step of its own, of many rows by tiles. Everything
// between two contractions goes by groups of ops, a launch each:
//
//   rows    one block for each index of the loops that all ops of the group have in common at their
//           begin; the block's threads share out the loops inside. Attention is one such group,
//           a block a head (of a row): scores, softmax and the mix of values. Where the ops have no
//           such loops in common (a norm, for instance, of the one row there is) it is a single
//           block.
//   points  one thread for each point: long elementwise ops, spread over the whole device.
//
// A kernel of many rows has their loop first in all ops, so that a group is a block a row. Both
// streams' rows lie one after the other in what is read and written by both: a block of such a
// group has a row of each.
//
// A group touches no more buffers than any device has room for. Ops of a group meet at barriers of
// their block, so that nothing that one block writes may be read by another within the group.
#ifndef CTXC_LIB_LOWERING_GPU_STEPS_H
#define CTXC_LIB_LOWERING_GPU_STEPS_H

#include "lib/Lowering/GPU/Views.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ctxc::gpu_lowering {

/// A call of a kernel support function, for one row or for each: memory by view, numbers by value.
struct Support {
  llvm::StringRef function;
  /// Of each operand, none of a number. A view's one stride is what lies between two rows; it has
  /// none where all rows have the same memory, which is then only read.
  llvm::SmallVector<std::optional<View>> memory;
  llvm::SmallVector<int64_t> numbers; ///< of each operand; 0 of memory
  llvm::SmallVector<double> reals;    ///< the same of those that are no integers
};

/// Memory that is read at a place that data name, within `length` elements from where the loops
/// are.
struct Gather {
  Access access;
  Extent length;
};

/// One op of a group: a linalg op, a memref.copy, a support call (its one loop is the rows', where
/// there are several) or experts.
struct RowOp {
  mlir::Operation *op;
  llvm::SmallVector<Extent> loops;
  llvm::SmallVector<bool> isReduction;
  /// Of a linalg op one for each operand (none for a scalar), inputs first; of a copy source and
  /// target.
  llvm::SmallVector<std::optional<Access>> accesses;
  int64_t inputs = 0; ///< how many of them are not written
  llvm::SmallVector<Gather> gathered;
  std::optional<Support> support;
  /// Of a contraction whose loops are (row, slot, m, k): which matrix of W each slot takes.
  std::optional<Access> selected;

  bool hasReduction() const { return llvm::is_contained(isReduction, true); }
  /// The arguments and allocations that it touches, some more than once.
  llvm::SmallVector<mlir::Value> roots() const;
  bool reads(mlir::Value root) const;
  bool writes(mlir::Value root) const;
};

struct Step {
  enum Kind { Contraction, Tiles, Rows, Points } kind;
  std::vector<RowOp> ops;           ///< of a contraction and of tiles one
  llvm::SmallVector<int64_t> outer; ///< Rows: the sizes of the loops in common
  bool accumulates = false;         ///< of these: y is added to, and not set
};

/// The steps of a kernel of `rows` rows. Fails, with a warning at the op, where there is a
/// construct that has no GPU form; `reason` says which.
mlir::FailureOr<std::vector<Step>> stepsOf(mlir::func::FuncOp kernel, const GpuTarget &target,
                                           int64_t rows, std::string &reason);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_STEPS_H
