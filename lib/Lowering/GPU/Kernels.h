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

/// A support call, by all threads of the block: for `row`; null is the one there is.
void writeSupport(KernelWriter &w, const Support &support, mlir::Value row);
/// Those of a post-norm's patch (ctxc/Numerics/NormInversion.h).
void writeInvertRmsNorm(KernelWriter &w, const Support &call, mlir::Value row);
void writeSolveScale(KernelWriter &w, const Support &call, mlir::Value row);
void writePredictScaleReplay(KernelWriter &w, const Support &call, mlir::Value row);
/// Element i of what `row` has of a call's memory.
mlir::Value placeOf(KernelWriter &w, const View &memory, mlir::Value row, mlir::Value i);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KERNELS_H
