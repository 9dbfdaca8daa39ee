// What the targets with a back end in LLVM share: from a gpu.module to the llvm dialect, to LLVM
// IR, optimised, and to code.
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

  /// Adds what brings a gpu.module to the llvm dialect for `target`, whose kernels these are.
  void addPasses(mlir::OpPassManager &pm, const GpuTarget &target) const;
  /// What GpuToLLVM does.
  mlir::LogicalResult convert(mlir::gpu::GPUModuleOp kernels) const;
  /// The code of the one gpu.module in `module`.
  llvm::Expected<std::string> emit(mlir::ModuleOp module, const MachineName &machine,
                                   const GpuTarget &target, llvm::CodeGenFileType type) const;

protected:
  /// How memory spaces, and ops of the gpu dialect, become those of the target's own dialect.
  /// Functions of numbers that are instructions (fma, floor, sqrt) are none of its business.
  virtual void configure(mlir::LLVMTypeConverter &converter) const = 0;
  virtual void populate(const mlir::LLVMTypeConverter &converter,
                        mlir::RewritePatternSet &patterns) const = 0;
  /// What is still to be said about a converted kernel.
  virtual void finish(mlir::LLVM::LLVMFuncOp kernel) const = 0;
  virtual void finish(llvm::Module &) const {}
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_LLVMKERNELS_H
