//===- Kernel.h - kernels: what blocks become, and what they are called with ===//
//
// A kernel is a func.func made from an xf.block. Its arguments carry their roles as attributes of
// the kernel dialect (#kernel.arg), which says what each kind is.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNEL_H
#define CTXC_LOWERING_KERNEL_H

#include "ctxc/Lowering/CpuTarget.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/XF/XF.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace ctxc {

using KernelArgKind = kernel::ArgKind;

struct KernelArg {
  KernelArgKind kind;
  std::string name;  ///< parameter, setting or patched parameter; else empty
  int64_t index = 0; ///< which input, output, state (in block order), or part of a patch
  int64_t run = 0;   ///< states and slots: 0 = the run or the full run, 1 = the reduced run
  mlir::Type type;   ///< memref type
  mlir::RankedTensorType stored = {}; ///< Bank, a quantised Param: the whole parameter's type
};

/// The arguments of a kernel function, in order.
llvm::SmallVector<KernelArg> kernelArguments(mlir::func::FuncOp kernel);

/// Whether `function` is a kernel: its arguments say what they are.
bool isKernel(mlir::func::FuncOp function);
llvm::SmallVector<mlir::func::FuncOp> kernelFunctions(mlir::ModuleOp module);

/// Lowers `block` to a kernel `name` in `module`: linalg on tensors of S rows, a
/// memref for each argument. Fails with a diagnostic at an op that has no
/// compiled form.
mlir::FailureOr<mlir::func::FuncOp> lowerBlockToLinalg(xf::BlockOp block, mlir::ModuleOp module,
                                                       llvm::StringRef name);

/// Lowers a module of kernels from linalg to the LLVM dialect, by buildCpuPipeline: bufferised in
/// place, contractions as register-tiled loops handed to the caller's threads, buffers in the
/// caller's workspace, one C entry `<name>` and one `<name>_workspace` a kernel (ctxc_kernel.h).
mlir::LogicalResult lowerKernelsToLLVM(mlir::ModuleOp module, const CpuTarget &target);

/// Registers what the lowering attaches to the dialects.
void registerLoweringModels(mlir::DialectRegistry &registry);

} // namespace ctxc

#endif // CTXC_LOWERING_KERNEL_H
