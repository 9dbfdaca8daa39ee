// Builds one gpu.func: buffers, indices, and the reductions over lanes and blocks.
//
// The order of every sum is fixed: a thread adds its own terms in order, the lanes of a subgroup
// are added by halves, and the subgroups of a block one after the other.
#ifndef CTXC_LIB_LOWERING_GPU_KERNELWRITER_H
#define CTXC_LIB_LOWERING_GPU_KERNELWRITER_H

#include "lib/Lowering/GPU/Views.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace ctxc::gpu_lowering {

class KernelWriter {
public:
  using Combine = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;

  /// Begins a function for blocks of `threads` threads, a multiple of the target's subgroup size.
  KernelWriter(mlir::gpu::GPUModuleOp module, llvm::StringRef name, mlir::Location loc,
               int64_t threads, const GpuTarget &target);
  /// Ends the function, which runs in a grid of `blocks` blocks.
  void finish(int64_t blocks);

  mlir::OpBuilder b;
  mlir::Location loc;
  const int64_t threads, lanes;
  const GpuTarget &target;

  /// The number of this thread in its block, of this block, of this thread's lane in its subgroup,
  /// and of the subgroup in the block.
  mlir::Value thread, block, lane, subgroup;

  // Numbers -----------------------------------------------------------------
  mlir::Value index(int64_t i);
  mlir::Value number(const Extent &extent);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value times(mlir::Value x, const Extent &factor);
  mlir::Value isBelow(mlir::Value x, mlir::Value limit);
  mlir::Value zeroOf(mlir::Type type);
  /// The indices whose row-major number is `flat`.
  llvm::SmallVector<mlir::Value> split(mlir::Value flat, llvm::ArrayRef<Extent> sizes);
  /// Converts a bfloat16 in the low half of an i32 to float32.
  mlir::Value fromBfloat16(mlir::Value bits);

  // Memory ------------------------------------------------------------------
  /// The flat buffer of `root`. With `element`, the buffer is read in elements of that type.
  mlir::Value buffer(mlir::Value root, mlir::Type element = {});
  mlir::Value at(const Access &access, mlir::ValueRange loops);
  /// A bfloat16 is widened to float32, and a quantised number decoded; other types are loaded as
  /// they are.
  mlir::Value load(mlir::Value root, mlir::Value at);
  /// Numbers 4 `group` to 4 `group` + 3 of a quantised matrix.
  llvm::SmallVector<mlir::Value> loadFour(mlir::Value root, mlir::Value group);
  void store(mlir::Value value, mlir::Value root, mlir::Value at);

  // Regions -----------------------------------------------------------------
  /// What stands for `value` of an op's region, by `map`: for a value from outside of the region, a
  /// copy of the number that it is.
  mlir::Value inside(mlir::Value value, mlir::IRMapping &map);
  /// Copies an op of a region: arithmetic, or a load.
  void copy(mlir::Operation &op, mlir::IRMapping &map);

  // Control -----------------------------------------------------------------
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  /// for i = from; i < to; i += step, with values carried from one iteration to the next.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, mlir::Value step,
                                      mlir::ValueRange values, Body body);
  void loop(mlir::Value from, mlir::Value to, mlir::Value step,
            llvm::function_ref<void(mlir::Value)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void barrier();

  // Sums --------------------------------------------------------------------
  /// Combines x over all lanes of the subgroup; every lane gets the result.
  mlir::Value combineLanes(mlir::Value x, Combine combine);
  /// Combines x over all threads of the block; every thread gets the result. All threads must reach
  /// this call.
  mlir::Value combineBlock(mlir::Value x, Combine combine);
  /// Combines several values at once.
  using CombineAll =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> combineBlock(mlir::ValueRange xs, CombineAll combine);

  mlir::gpu::GPUFuncOp function;
  /// The buffer behind each argument of the function; null for the numbers of visible tokens.
  llvm::SmallVector<mlir::Value> roots;

private:
  mlir::Value fromLane(mlir::Value x, int64_t half);
  mlir::Value sharedMemory(mlir::Type type, unsigned number);
  mlir::Value visibleTokens(int64_t run);
  mlir::Value argument(mlir::Value root, mlir::MemRefType type);

  llvm::MapVector<mlir::Value, mlir::Value> buffers;
  mlir::Value visible[2], visibleBuffer;
  /// One element for each subgroup, by type and number.
  llvm::DenseMap<std::pair<mlir::Type, unsigned>, mlir::Value> shared;
};

/// The type in which an element is stored in a GPU's memory: bfloat16 is stored as a 16-bit
/// integer.
mlir::Type storageType(mlir::Type element);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KERNELWRITER_H
