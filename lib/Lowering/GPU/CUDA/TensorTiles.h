// Contractions of many rows with matrices of bfloat16 by NVIDIA's tensor cores (compute capability
// 8.0 and later).
#ifndef CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H
#define CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H

#include "lib/Lowering/GPU/TileContraction.h"

namespace ctxc::gpu_lowering {

/// Whether there is a tensor-core kernel: weights of bfloat16, whose rows and those of x are pieces
/// of 16 bytes, without batch.
bool isForTensorCores(const Step &step, const TileLoops &loops);

/// That kernel. With `rounded` x is taken as the nearest bfloat16, else as it is.
WrittenKernel writeTensorTiles(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                               const Step &step, const TileLoops &loops, bool rounded,
                               const GpuTarget &target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_CUDA_TENSORTILES_H
