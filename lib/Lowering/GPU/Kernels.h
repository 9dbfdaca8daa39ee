// The kernels that steps become.
#ifndef CTXC_LIB_LOWERING_GPU_KERNELS_H
#define CTXC_LIB_LOWERING_GPU_KERNELS_H

#include "lib/Lowering/GPU/KernelWriter.h"
#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// A kernel that was written: its function, the grid, and what its arguments stand for.
struct WrittenKernel {
  mlir::gpu::GPUFuncOp function;
  llvm::SmallVector<mlir::Value> roots; ///< null: the numbers of visible tokens
  int64_t blocks, threads;
};

WrittenKernel writeRows(mlir::gpu::GPUModuleOp module, llvm::StringRef name, const Step &step,
                        const GpuTarget &target);
WrittenKernel writeContraction(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                               const Step &step, const GpuTarget &target);

/// A support call, by all threads of the block.
void writeSupport(KernelWriter &w, const Support &support);
/// Those of a post-norm's patch (NormSolver.h).
void writeInvertRmsNorm(KernelWriter &w, const Support &call);
void writeSolveScale(KernelWriter &w, const Support &call);
void writePredictScaleReplay(KernelWriter &w, const Support &call);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KERNELS_H
