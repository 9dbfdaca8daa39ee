// Contractions of many rows: y[b, s, m] (+)= Σ_k W[b, m, k] x[b, s, k] by tiles.
//
// When to use: where a kernel is of more rows than one (a chunk of a prompt). A block of the device
// takes a tile of y, rows by columns, and both operands go through the memory that its threads
// share, so that W is read once for each tile of rows and x once for each tile of columns.
#ifndef CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H
#define CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H

#include "lib/Lowering/GPU/Kernels.h"

namespace ctxc::gpu_lowering {

/// Which loops of a contraction number what. Columns are y's last dimension (the rows m of a stored
/// matrix); rows are all else that one operand has and the other has not; a batch index is in both.
struct TileLoops {
  llvm::SmallVector<size_t> batch, rows;
  size_t column, k;
  size_t columnSide, rowSide; ///< which of the two inputs has the columns, and which the rows
};

/// None where the op is no contraction of two inputs, or its batch and rows are not of fixed sizes.
std::optional<TileLoops> tileLoopsOf(const RowOp &op);

/// Sets, or adds to, the element of the result at `indices` of all loops.
void putSum(KernelWriter &w, const Step &step, mlir::ValueRange indices, mlir::Value sum);

/// The kernel of a contraction for which there are TileLoops. Columns and k may grow with the
/// visible tokens; weights are float32, bfloat16 or float16, all else float32.
WrittenKernel writeTiles(mlir::gpu::GPUModuleOp module, llvm::StringRef name, const Step &step,
                         const GpuTarget &target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H
