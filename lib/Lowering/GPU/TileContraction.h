// Contractions of many rows: y[b, s, m] (+)= Σ_k W[b, m, k] x[b, s, k] by tiles.
//
// Use it where a kernel has more than one row (a chunk of a prompt). A block takes a tile of y,
// rows by columns, and both operands go through shared memory, so that W is read once for each tile
// of rows, and x once for each tile of columns.
#ifndef CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H
#define CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H

#include "lib/Lowering/GPU/Kernels.h"

namespace ctxc::gpu_lowering {

/// The role of each loop of a contraction. Columns are y's last dimension (the rows m of a stored
/// matrix). Rows are all other dimensions that one operand has and the other has not. A batch index
/// occurs in both operands.
struct TileLoops {
  llvm::SmallVector<size_t> batch, rows;
  size_t column, k;
  size_t columnSide, rowSide; ///< which of the two inputs has the columns, which the rows
};

/// None where the op is not a contraction of two inputs, or the sizes of its batch and rows are not
/// fixed.
std::optional<TileLoops> tileLoopsOf(const RowOp &op);

/// Stores `sum` to the element of the result at `indices`, one for each loop, or adds it to that
/// element.
void putSum(KernelWriter &w, const Step &step, mlir::ValueRange indices, mlir::Value sum);

/// The kernel of a contraction that has TileLoops. Columns and k may grow with the visible tokens.
/// Weights are float32, bfloat16 or float16, everything else is float32.
WrittenKernel writeTiles(mlir::gpu::GPUModuleOp module, llvm::StringRef name, const Step &step,
                         const GpuTarget &target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_TILECONTRACTION_H
