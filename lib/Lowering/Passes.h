// The steps of lowerKernelsToLLVM that are our own, each a function of a module
// of kernels on memrefs.
#ifndef CTXC_LOWERING_PASSES_H
#define CTXC_LOWERING_PASSES_H

#include "ctxc/Lowering/Kernel.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// The two halves of lowerKernelsToLLVM. After the first, contractions are functions that depend on
/// nothing else in the module.
mlir::LogicalResult bufferizeAndContract(mlir::ModuleOp module, const CpuTarget &target);
mlir::LogicalResult lowerContractedToLLVM(mlir::ModuleOp module, const CpuTarget &target);

/// Turns kernels on tensors into kernels on memrefs, in place where that is possible: the common
/// ground of all targets.
mlir::LogicalResult bufferizeKernels(mlir::ModuleOp module);

/// Replaces every contraction with a stored matrix by a call of the caller's
/// parallel-for over register-tiled blocks of rows. Fails, with a diagnostic, where anything
/// else reads a quantised matrix.
mlir::LogicalResult lowerContractions(mlir::ModuleOp module, const CpuTarget &target);

/// Makes functions of a range of rows of what goes over rows and is no contraction, and calls of
/// the caller's parallel-for of them.
mlir::LogicalResult shareRows(mlir::ModuleOp module, const CpuTarget &target);

/// Places every memref.alloc of the kernels in the caller's workspace, one after
/// the other and aligned to 64 bytes, and adds for each kernel the function
/// `<name>_workspace(rows, visible0, visible1)` that gives the bytes.
mlir::LogicalResult placeBuffers(mlir::ModuleOp module);

/// Replaces every linalg op on memrefs by loops: products of attention and reductions by loops over
/// vectors, others by plain ones, which isOfLinalg then knows. What a linalg op reads at other
/// places than it writes is other memory.
mlir::LogicalResult linalgToLoops(mlir::ModuleOp module, const CpuTarget &target);
/// The same of one op, which stays. The outermost loop, null where there is none.
mlir::FailureOr<mlir::scf::ForOp> linalgToLoops(mlir::RewriterBase &rewriter,
                                                mlir::linalg::LinalgOp op, const CpuTarget &target);
bool isOfLinalg(mlir::scf::ForOp loop);

/// In linalg's loops: a sum that goes from one step to the next through memory goes through a
/// register.
void keepSumsInRegisters(mlir::ModuleOp module);

/// Marks innermost loops of linalg whose steps are independent, as scf and then as LLVM's.
void markParallelLoops(mlir::ModuleOp module);
void markParallelAccesses(mlir::ModuleOp module);

/// Replaces exp, tanh, erf, … of float32 by polynomials, which need no library and which loops over
/// them can be vectorised with. They are within a few units in the last place.
void approximateFunctions(mlir::ModuleOp module);

/// Adds for each kernel `<name>` its C entry of that name, which gives the status of
/// ctxc_kernel.h; the kernel itself becomes `<name>_body`.
void addEntryPoints(mlir::ModuleOp module);

/// Writes what the target has no instruction for, and LLVM would call a library for, in
/// others: fused multiply-adds as two roundings, float16 as integers.
void withoutMissingInstructions(mlir::ModuleOp module, const CpuTarget &target);

/// Whether `function` is a kernel (its arguments say what they are).
bool isKernel(mlir::func::FuncOp function);

} // namespace ctxc

#endif // CTXC_LOWERING_PASSES_H
