// Contractions of many rows with bfloat16 matrices on NVIDIA's tensor cores (compute capability 8.0
// and later).
#ifndef CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H
#define CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H

#include "lib/Lowering/GPU/TileContraction.h"

namespace ctxc::gpu_lowering {

/// Whether the tensor-core kernel can run the step: W is bfloat16, the rows of W and of x are whole
/// pieces of 16 bytes, and there is no batch dimension.
bool isForTensorCores(const Step &step, const TileLoops &loops);

/// Writes that kernel. With `rounded`, x is rounded to the nearest bfloat16; otherwise its exact
/// value is used.
WrittenKernel writeTensorTiles(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                               const Step &step, const TileLoops &loops, bool rounded,
                               const GpuTarget &target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H
