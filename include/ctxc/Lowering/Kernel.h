//===- Kernel.h - kernels: what blocks become, and what they are called with ===//
//
// A kernel is a func.func made from an xf.block. Its arguments carry their
// meaning as attributes, so that whoever holds the IR (the executor, the
// manifest, a reader of --emit=linalg) knows what to pass:
//
//   %positions: memref<?xi32>             {ctxc.kind = "positions"}
//   %W: memref<2048x640xbf16>             {ctxc.kind = "param", ctxc.name = "mlp.up_proj.weight"}
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_KERNEL_H
#define CTXC_LOWERING_KERNEL_H

#include "ctxc/Lowering/CpuTarget.h"
#include "dialects/XF/XF.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace ctxc {

enum class KernelArgKind {
  Positions, ///< S × i32: the rows' absolute positions
  Tokens,    ///< S × i32: the rows' token ids
  Input,     ///< S × shape, f32: a block input
  Output,    ///< S × shape, f32: a block output
  Param,     ///< a stored parameter, in its stored shape and type
  Bank,      ///< the address of each slice, along the first dimension, of a stored parameter
  Setting,   ///< f32 numbers of a setting (index settings: one i64)
  State,     ///< visible × shape, f32: what a contextual op keeps; the last S rows are written, but
             ///< in the reduced run of a dual block none
  Slots,     ///< visible × i32: the absolute positions of a run's tokens, these S included; in the
             ///< reduced run of a dual block the last is not read
  Store,     ///< S × n, f32: a part of a parameter's patch, written
  Load,      ///< n, f32: a part of a parameter's patch, read
  Counts,    ///< S × obligations × 2, i64: harmless and harmful, added to
  Replay     ///< S, f64: the predicted replay error of the block's output, written
};

llvm::StringRef stringifyKernelArgKind(KernelArgKind kind);

struct KernelArg {
  KernelArgKind kind;
  std::string name;   ///< parameter, setting or patched parameter; else empty
  int64_t index = 0;  ///< which input, output, state (in block order), or part of a patch
  int64_t stream = 0; ///< states and slots: 0 = the run or the full run, 1 = the reduced run
  mlir::Type type;    ///< memref type
  mlir::RankedTensorType stored = {}; ///< Bank: the whole parameter's type
};

/// The arguments of a kernel function, in order.
llvm::SmallVector<KernelArg> kernelArguments(mlir::func::FuncOp kernel);

/// Whether `function` is a kernel: its arguments say what they are.
bool isKernel(mlir::func::FuncOp function);
llvm::SmallVector<mlir::func::FuncOp> kernelFunctions(mlir::ModuleOp module);

/// A kernel function with this attribute rounds the vectors of a call of many rows to bfloat16,
/// where they meet a matrix that is stored so and the target has an instruction for it.
inline constexpr llvm::StringLiteral roundedAttr = "ctxc.rounded";

/// With this attribute on attention over the reduced run, nothing is kept of the context: a row
/// sees itself alone.
inline constexpr llvm::StringLiteral aloneAttr = "ctxc.alone";

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
