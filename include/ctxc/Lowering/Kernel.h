//===- Kernel.h - kernels: what blocks become, and what they are called with ===//
//
// A kernel is a func.func made from an xf.block. Each argument carries its role as an attribute of
// the kernel dialect (#kernel.arg), whose description explains the roles.
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
  std::string name;  ///< parameter, setting or patched parameter; otherwise empty
  int64_t index = 0; ///< which input, output, state (in block order), or part of a patch
  int64_t run = 0; ///< of states, slots and rooms: 0 = the run or the full run, 1 = the reduced run
  mlir::Type type; ///< memref type
  mlir::RankedTensorType stored = {}; ///< Bank, quantised Param: the whole parameter's type
};

/// The arguments of a kernel function, in order.
llvm::SmallVector<KernelArg> kernelArguments(mlir::func::FuncOp kernel);

/// Whether `function` is a kernel: its arguments have roles.
bool isKernel(mlir::func::FuncOp function);
llvm::SmallVector<mlir::func::FuncOp> kernelFunctions(mlir::ModuleOp module);

/// Where a kernel finds the keys and values of attention with several groups of heads. A decoded
/// token takes one group after the other, and a processor's own prefetch follows what lies in line.
enum class StateLayout {
  ByToken, ///< visible × groups × width
  ByGroup, ///< groups × room × width, of which the first tokens of each group are visible
};

/// Lowers `block` to a kernel `name` in `module`: linalg on tensors of S rows, with a memref for
/// each argument. Fails with a diagnostic at an op that has no compiled form.
mlir::FailureOr<mlir::func::FuncOp> lowerBlockToLinalg(xf::BlockOp block, mlir::ModuleOp module,
                                                       llvm::StringRef name,
                                                       StateLayout layout = StateLayout::ByToken);
/// How many groups of a state's numbers lie apart with StateLayout::ByGroup.
int64_t groupsOfState(const KernelArg &state);

/// Lowers a module of kernels from linalg to the LLVM dialect with buildCpuPipeline: bufferised in
/// place, contractions as register-tiled loops that the caller's threads run, buffers in the
/// caller's workspace, and for each kernel a C entry `<name>` and a function `<name>_workspace`
/// (ctxc_kernel.h).
mlir::LogicalResult lowerKernelsToLLVM(mlir::ModuleOp module, const CpuTarget &target);

/// Registers the interfaces that the lowering attaches to ops of the dialects.
void registerLoweringModels(mlir::DialectRegistry &registry);

} // namespace ctxc

#endif // CTXC_LOWERING_KERNEL_H
