// The code that GPU targets with an LLVM back end share: from a gpu.module to the llvm dialect, to
// optimised LLVM IR, and to machine code.
#ifndef CTXC_LIB_LOWERING_GPU_LLVMKERNELS_H
#define CTXC_LIB_LOWERING_GPU_LLVMKERNELS_H

#include "ctxc/Lowering/GPU.h"
#include "lib/Lowering/Objects/MachineCode.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace ctxc::gpu_lowering {

class LlvmKernels {
public:
  virtual ~LlvmKernels() = default;

  /// Adds the passes that bring a gpu.module to the llvm dialect for `target`, which these kernels
  /// belong to.
  void addPasses(mlir::OpPassManager &pm, const GpuTarget &target) const;
  /// The body of the pass GpuToLLVM.
  mlir::LogicalResult convert(mlir::gpu::GPUModuleOp kernels) const;
  /// The machine code of the one gpu.module in `module`.
  llvm::Expected<std::string> emit(mlir::ModuleOp module, const MachineName &machine,
                                   const GpuTarget &target, llvm::CodeGenFileType type) const;

protected:
  /// How memory spaces and ops of the gpu dialect become those of the target's own dialect. Math
  /// functions that are single instructions (fma, floor, sqrt) are converted elsewhere.
  virtual void configure(mlir::LLVMTypeConverter &converter) const = 0;
  virtual void populate(const mlir::LLVMTypeConverter &converter,
                        mlir::RewritePatternSet &patterns) const = 0;
  /// Adds the attributes that the target needs on a converted kernel.
  virtual void finish(mlir::LLVM::LLVMFuncOp kernel) const = 0;
  virtual void finish(llvm::Module &) const {}
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_LLVMKERNELS_H
