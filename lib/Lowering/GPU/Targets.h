// The constructors of the GPU targets. Each takes the part of the target's name after the colon.
#ifndef CTXC_LIB_LOWERING_GPU_TARGETS_H
#define CTXC_LIB_LOWERING_GPU_TARGETS_H

#include "ctxc/Lowering/GPU.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace ctxc::gpu_lowering {

#define CTXC_DEVICE(NAME, TEXT, EXAMPLES)                                                          \
  llvm::Expected<std::unique_ptr<GpuTarget>> make##NAME##Target(llvm::StringRef rest);
#include "ctxc/Support/Devices.def"

/// The one gpu.module of a module.
mlir::gpu::GPUModuleOp kernelsOf(mlir::ModuleOp module);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_TARGETS_H
