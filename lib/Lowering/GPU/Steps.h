// A bufferised kernel as the steps that a GPU launches.
//
// A contraction with a stored matrix is a step of its own, or one with others of the same vectors;
// with many rows it is computed in tiles.
// A single row's attention is a step of two launches; that of many rows is linalg ops here. All
// else is divided into groups of ops, each of which is a launch:
//
//   rows    One block for each index of the leading loops that all ops of the group have in common;
//           the block's threads divide the inner loops. The softmax of many rows' attention is such
//           a group, with a block for each head and row. Where the ops have no leading loops in
//           common, such as a norm of a single row, the group is a single block.
//   points  One thread for each point: long elementwise ops, spread over the whole device.
//
// In a kernel of many rows, the rows are the first loop of all ops, so that a group has one block
// for each row. Buffers that both runs of a dual block use hold the rows of one run after those of
// the other: a block of such a group has one row of each run.
//
// A group uses no more buffers than any device allows. The ops of a group are separated by barriers
// of their block, so that nothing that one block writes may be read by another block of the group.
#ifndef CTXC_LIB_LOWERING_GPU_STEPS_H
#define CTXC_LIB_LOWERING_GPU_STEPS_H

#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/GPU/Views.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ctxc::gpu_lowering {

/// A kernel.call, for one row or for each row.
struct Support {
  kernel::SupportFunction function;
  mlir::ArrayAttr numbers;
  /// The view's only stride is the distance between two rows. It has no stride where all rows share
  /// the memory, which is then only read, and where there is only one row.
  llvm::SmallVector<View> memory;

  int64_t number(unsigned i) const { return mlir::cast<mlir::IntegerAttr>(numbers[i]).getInt(); }
  double real(unsigned i) const {
    return mlir::cast<mlir::FloatAttr>(numbers[i]).getValueAsDouble();
  }
  bool uses(mlir::Value root) const {
    return llvm::any_of(memory, [&](const View &view) { return view.root == root; });
  }
};

/// A read at an index that comes from data, at most `length` elements behind the address that the
/// loops give.
struct Gather {
  Access access;
  Extent length;
};

/// One op of a group: a linalg op, a memref.copy, a kernel.call (whose only loop goes over the
/// rows, where there are several), experts or attention.
struct RowOp {
  mlir::Operation *op;
  llvm::SmallVector<Extent> loops;
  llvm::SmallVector<bool> isReduction;
  /// For a linalg op, one for each operand (none for a scalar), inputs first; for a copy, source
  /// and target.
  llvm::SmallVector<std::optional<Access>> accesses;
  int64_t inputs = 0; ///< how many of the accesses are inputs
  llvm::SmallVector<Gather> gathered;
  std::optional<Support> support;
  /// For a contraction whose loops are (row, slot, m, k): which matrix of W each slot takes.
  std::optional<Access> selected;

  bool hasReduction() const { return llvm::is_contained(isReduction, true); }
  /// Whether its sums are so short that one thread adds them up.
  bool isShortSum() const;
  /// The arguments and allocations that the op touches, possibly with duplicates.
  llvm::SmallVector<mlir::Value> roots() const;
  bool reads(mlir::Value root) const;
  bool writes(mlir::Value root) const;
};

struct Step {
  enum Kind { Contraction, Tiles, Attention, Rows, Points } kind;
  std::vector<RowOp> ops;           ///< exactly one for Tiles and Attention
  llvm::SmallVector<int64_t> outer; ///< Rows: the sizes of the common loops
  bool accumulates = false;         ///< Contraction, Tiles: y is added to, not overwritten
};

/// The steps of a kernel of `rows` rows. Fails, with a warning at the op, where an op has no GPU
/// form; `reason` says why.
mlir::FailureOr<std::vector<Step>> stepsOf(mlir::func::FuncOp kernel, const GpuTarget &target,
                                           int64_t rows, std::string &reason);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_STEPS_H
