// What the two kernels of a row's attention have in common.
//
// The first launch. The slots of a group of heads are dealt out to the subgroups of `splits`
// blocks: subgroup i of all `n` takes slots i, i + n, … Its lanes read adjacent pieces of a key and
// a value, for several slots at once, and each that is read serves several heads. A subgroup goes
// over its slots once, with the largest score m so far, the sum l of exp(a − m), and the sum of the
// values weighted by exp(a − m), which are multiplied by exp(m − m') when a larger m' comes. The
// subgroups of a block are joined in shared memory. (Dao et al., "Flash-Decoding for long-context
// inference", 2023.)
//
// The second launch. A block for each head joins what the blocks have written, the sink and the
// row's own slot.
//
// Order. A lane adds its components of a product in order, and lanes are added by halves. Which
// slots a subgroup takes depends on the sizes of the heads alone, neither on the device nor on the
// number of slots.
#ifndef CTXC_LIB_LOWERING_GPU_ATTENTIONKERNEL_H
#define CTXC_LIB_LOWERING_GPU_ATTENTIONKERNEL_H

#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/GPU/Kernels.h"

namespace ctxc::gpu_lowering {

/// How the work is divided. The loops of the RowOp are those of Loop.
struct AttentionShape {
  enum Loop { Row, Group, Head, Slot, In, Out };
  /// Keys or values: how the lanes of a subgroup divide one of them.
  struct Pieces {
    const Access *access;
    Loop along;
    int64_t size;
    bool inFours; ///< read 16 bytes at a time
    int64_t perLane;
  };
  static constexpr int64_t subgroupsOfBlock = 8;

  AttentionShape(const RowOp &row, const GpuTarget &target);
  int64_t subgroups() const { return splits * subgroupsOfBlock; }

  const RowOp &row;
  kernel::AttentionOp op;
  const int64_t lanes, groups, repeat, out;
  Pieces keys, values;
  int64_t heads;       ///< that share what a subgroup reads
  int64_t parts;       ///< into which the heads of a group are divided
  int64_t splits;      ///< into which the slots are divided
  int64_t ahead;       ///< how many slots a subgroup reads at once
  mlir::Value partial; ///< what the first launch writes: for each split and head, its mixed values,
                       ///< the sum, and the largest score

private:
  Pieces scalars(Pieces p) const;
  Pieces piecesOf(size_t operand, Loop along) const;
};

class AttentionWriter {
protected:
  using Values = llvm::SmallVector<mlir::Value>;
  using Loop = AttentionShape::Loop;
  using Pieces = AttentionShape::Pieces;

  AttentionWriter(KernelWriter &w, const AttentionShape &shape)
      : w(w), shape(shape), op(shape.op) {}

  // Numbers -------------------------------------------------------------------
  mlir::Value real(double x);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, mlir::Value b);
  mlir::Value larger(mlir::Value a, mlir::Value b);
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value sum);
  /// exp(x − largest), which is 0 for all x where no slot is seen.
  mlir::Value weightOf(mlir::Value x, mlir::Value largest);
  mlir::Value sumOfLanes(mlir::Value x);
  mlir::Value largestOfLanes(mlir::Value x);
  mlir::Value isZero(mlir::Value i);
  mlir::Value by(mlir::Value i, int64_t factor) { return w.times(i, fixedExtent(factor)); }

  // Memory --------------------------------------------------------------------
  size_t operand(mlir::MutableOperandRange range) const {
    return range.begin()->getOperandNumber();
  }
  mlir::Value read(size_t operand, const Values &indices);
  /// The indices of a head of `group` and of a slot; components are at 0.
  Values indices(mlir::Value head, mlir::Value slot);
  /// Where the results of a split for a head lie.
  mlir::Value partialAt(mlir::Value split, mlir::Value head);
  mlir::Value sharedMemory(int64_t numbers);

  // Slots ---------------------------------------------------------------------
  /// The first slot that the row's window leaves.
  mlir::Value beginOf(mlir::Value slots);
  /// How many splits have slots, the first ones; at least one.
  mlir::Value usedSplits(mlir::Value slots);

  KernelWriter &w;
  const AttentionShape &shape;
  kernel::AttentionOp op;
  mlir::Value group; ///< that this block has
};

WrittenKernel writeAttentionParts(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                                  const AttentionShape &shape, const GpuTarget &target);
WrittenKernel writeAttentionJoin(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                                 const AttentionShape &shape, const GpuTarget &target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_ATTENTIONKERNEL_H
