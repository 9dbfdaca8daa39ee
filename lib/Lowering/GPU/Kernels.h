// The kernels that steps become.
#ifndef CTXC_LIB_LOWERING_GPU_KERNELS_H
#define CTXC_LIB_LOWERING_GPU_KERNELS_H

#include "lib/Lowering/GPU/KernelWriter.h"
#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

/// A kernel that has been written: its function, its grid, and which buffers its arguments are.
struct WrittenKernel {
  mlir::gpu::GPUFuncOp function;
  llvm::SmallVector<mlir::Value> roots; ///< null stands for the numbers of visible tokens
  int64_t blocks, threads;
};

WrittenKernel writeRows(mlir::gpu::GPUModuleOp module, llvm::StringRef name, const Step &step,
                        const GpuTarget &target);
WrittenKernel writeContraction(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                               const Step &step, const GpuTarget &target);
/// The two launches of a row's attention, and the bytes that the second reads of the first.
struct WrittenAttention {
  WrittenKernel parts, join;
  int64_t between;
};
WrittenAttention writeAttention(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                                const Step &step, const GpuTarget &target);

/// Writes a support call, run by all threads of the block, for `row`; a null `row` means that there
/// is only one.
void writeSupport(KernelWriter &w, const Support &support, mlir::Value row);
/// The support calls of a post-norm's patch (ctxc/Numerics/NormInversion.h).
void writeInvertRmsNorm(KernelWriter &w, const Support &call, mlir::Value row);
void writeSolveScale(KernelWriter &w, const Support &call, mlir::Value row);
void writePredictScaleReplay(KernelWriter &w, const Support &call, mlir::Value row);
/// The index of element i of `row` in the memory of a support call.
mlir::Value placeOf(KernelWriter &w, const View &memory, mlir::Value row, mlir::Value i);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_KERNELS_H
