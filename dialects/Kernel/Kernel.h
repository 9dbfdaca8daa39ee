//===- Kernel.h - the kernel dialect: products, roles and marks -----------===//
#ifndef CTXC_DIALECTS_KERNEL_KERNEL_H
#define CTXC_DIALECTS_KERNEL_KERNEL_H

#include "dialects/Kernel/SupportFunctions.h"
#include "dialects/XF/XF.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::linalg {
class GenericOp;
} // namespace mlir::linalg

#include "dialects/Kernel/KernelEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.h.inc"

#include "dialects/Kernel/KernelDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.h.inc"

namespace ctxc::kernel {

/// The role of a kernel's argument; null for an argument without a role, and for a value that is
/// not a function's argument.
ArgAttr roleOf(mlir::FunctionOpInterface function, unsigned argument);
ArgAttr roleOf(mlir::Value value);

// The marks, as KernelDialect.td describes them.
using Causal = KernelDialect::CausalAttrHelper;
using RowLoop = KernelDialect::RowLoopAttrHelper;
using LinalgLoop = KernelDialect::LinalgLoopAttrHelper;
using Rounded = KernelDialect::RoundedAttrHelper;
using Split = KernelDialect::SplitAttrHelper;
using Integer = KernelDialect::IntegerAttrHelper;
using Alone = KernelDialect::AloneAttrHelper;
using RoundedState = KernelDialect::RoundedStateAttrHelper;
using RowsFrom = KernelDialect::RowsFromAttrHelper;

/// Which product of attention `op` is; none if it is not one.
std::optional<Product> productOf(mlir::Operation *op);

/// Marks every attention to keep keys and values in bfloat16.
void markRoundedStates(mlir::ModuleOp module);

/// Whether `op` carries a mark, as in isMarked<Causal>(op).
template <typename Mark> bool isMarked(mlir::Operation *op) {
  return Mark(op->getContext()).isAttrPresent(op);
}
template <typename Mark> void mark(mlir::Operation *op) {
  Mark(op->getContext()).setAttr(op, mlir::UnitAttr::get(op->getContext()));
}

} // namespace ctxc::kernel

#endif // CTXC_DIALECTS_KERNEL_KERNEL_H
