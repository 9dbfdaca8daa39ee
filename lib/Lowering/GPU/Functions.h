// cos and sin in arithmetic, so that kernels need no library of the device's.
#ifndef CTXC_LIB_LOWERING_GPU_FUNCTIONS_H
#define CTXC_LIB_LOWERING_GPU_FUNCTIONS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace ctxc::gpu_lowering {

/// Within 2e-7 for |x| up to 2^20.
void expandRotations(mlir::gpu::GPUModuleOp module);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_FUNCTIONS_H
