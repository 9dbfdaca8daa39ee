// One gpu.func while it is written: buffers, indices, and the sums that lanes and blocks take
// together.
//
// Every sum has one order: a thread adds what is its own in order, the lanes of a subgroup are
// added by halves, and the subgroups of a block one after the other.
#ifndef CTXC_LIB_LOWERING_GPU_KERNELWRITER_H
#define CTXC_LIB_LOWERING_GPU_KERNELWRITER_H

#include "lib/Lowering/GPU/Views.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace ctxc::gpu_lowering {

class KernelWriter {
public:
  using Combine = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;

  /// Begins a function of blocks of `threads`, a multiple of the target's subgroup.
  KernelWriter(mlir::gpu::GPUModuleOp module, llvm::StringRef name, mlir::Location loc,
               int64_t threads, const GpuTarget &target);
  /// Ends it, for `blocks`.
  void finish(int64_t blocks);

  mlir::OpBuilder b;
  mlir::Location loc;
  const int64_t threads, lanes;

  /// This thread's number in its block, this block's, this thread's lane in its subgroup and that
  /// one's number in the block.
  mlir::Value thread, block, lane, subgroup;

  // Numbers -----------------------------------------------------------------
  mlir::Value index(int64_t i);
  mlir::Value number(const Extent &extent);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value times(mlir::Value x, const Extent &factor);
  mlir::Value isBelow(mlir::Value x, mlir::Value limit);
  mlir::Value zeroOf(mlir::Type type);
  /// The indices of which `flat` is the row-major number.
  llvm::SmallVector<mlir::Value> split(mlir::Value flat, llvm::ArrayRef<Extent> sizes);
  /// bfloat16 in the low half of an i32, as float32.
  mlir::Value fromBfloat16(mlir::Value bits);

  // Memory ------------------------------------------------------------------
  /// The flat buffer of `root`; of `element` where it is to be read in other pieces than its own.
  mlir::Value buffer(mlir::Value root, mlir::Type element = {});
  mlir::Value at(const Access &access, mlir::ValueRange loops);
  /// bfloat16 comes as float32, other types as they are.
  mlir::Value load(mlir::Value root, mlir::Value at);
  void store(mlir::Value value, mlir::Value root, mlir::Value at);

  // Control -----------------------------------------------------------------
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  /// for i = from; i < to; i += step, with values that go from step to step.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, mlir::Value step,
                                      mlir::ValueRange values, Body body);
  void loop(mlir::Value from, mlir::Value to, mlir::Value step,
            llvm::function_ref<void(mlir::Value)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void barrier();

  // Sums --------------------------------------------------------------------
  /// Of all lanes, in all lanes.
  mlir::Value combineLanes(mlir::Value x, Combine combine);
  /// Of all threads of the block, in all of them. All must come here.
  mlir::Value combineBlock(mlir::Value x, Combine combine);
  /// The same of several at once.
  using CombineAll =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> combineBlock(mlir::ValueRange xs, CombineAll combine);

  mlir::gpu::GPUFuncOp function;
  /// What the function's arguments stand for; null for the numbers of visible tokens.
  llvm::SmallVector<mlir::Value> roots;

private:
  mlir::Value fromLane(mlir::Value x, int64_t half);
  mlir::Value sharedMemory(mlir::Type type, unsigned number);
  mlir::Value visibleTokens(int64_t stream);
  mlir::Value argument(mlir::Value root, mlir::MemRefType type);

  llvm::MapVector<mlir::Value, mlir::Value> buffers;
  mlir::Value visible[2], visibleBuffer;
  /// By type and number: an element for each subgroup.
  llvm::DenseMap<std::pair<mlir::Type, unsigned>, mlir::Value> shared;
};

/// Of what a buffer's elements are in a GPU's memory: bfloat16 as 16 bits.
mlir::Type storageType(mlir::Type element);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KERNELWRITER_H
