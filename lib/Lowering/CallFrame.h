// Access to ctxc_call from inside a kernel, and memrefs made from addresses.
#ifndef CTXC_LOWERING_CALLFRAME_H
#define CTXC_LOWERING_CALLFRAME_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ctxc {

/// The fields of ctxc_call (ctxc_kernel.h), in order.
enum class CallField : int32_t {
  Rows,
  Visible,
  Arguments,
  Workspace,
  ParallelFor,
  ParallelContext
};

/// Loads a field of the call at `call` (!llvm.ptr): i64 for Rows and Visible
/// (entry `index`), else !llvm.ptr.
mlir::Value loadCallField(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, CallField field,
                          int64_t index = 0);

/// Stores `values` side by side in memory of the kernel, a struct of `type`, and returns its
/// address. The memory is taken at the kernel's begin.
mlir::Value storeFrame(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                       mlir::LLVM::LLVMStructType type, mlir::ValueRange values);

/// Hands `function`(frame, begin, end) to the caller's parallel-for, for `count` (i64) together.
void callParallelFor(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                     mlir::func::FuncOp function, mlir::Value count, mlir::Value frame);

/// A memref of identity layout at `address` (!llvm.ptr). Only its first dimension may
/// be dynamic, and is then `leading` (index).
mlir::Value memrefAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address,
                     mlir::MemRefType type, mlir::Value leading);

/// The address (!llvm.ptr) of a memref's first element, its offset included.
mlir::Value addressOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);

/// `index` as i64, and back.
mlir::Value toI64(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index);
mlir::Value toIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value i64);

} // namespace ctxc

#endif // CTXC_LOWERING_CALLFRAME_H
