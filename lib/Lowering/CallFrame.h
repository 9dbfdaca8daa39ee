// Access to ctxc_call from inside a kernel, and memrefs at given addresses.
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

/// Loads a field of the call at `call` (!llvm.ptr). The result is i64 for Rows and Visible (entry
/// `index`), and !llvm.ptr for the others.
mlir::Value loadCallField(mlir::OpBuilder &b, mlir::Location loc, mlir::Value call, CallField field,
                          int64_t index = 0);

/// Stores `values` in a struct of type `type` on the kernel's stack, and returns its address. The
/// memory is allocated at the kernel's start.
mlir::Value storeFrame(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                       mlir::LLVM::LLVMStructType type, mlir::ValueRange values);

/// Calls the caller's parallel-for with `function`(frame, begin, end) for `count` (i64) units of
/// work in all.
void callParallelFor(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                     mlir::func::FuncOp function, mlir::Value count, mlir::Value frame);

/// A memref of identity layout at `address` (!llvm.ptr). Only its first dimension may be dynamic;
/// its size is then `leading` (index).
mlir::Value memrefAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address,
                     mlir::MemRefType type, mlir::Value leading);

/// The address (!llvm.ptr) of a memref's first element, its offset included.
mlir::Value addressOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);
/// The same address, which LLVM takes for another one: what it knows of that one's memory, it reads
/// here again.
mlir::Value hidden(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address);

/// The type in which a value is passed to another function in a frame; null where it cannot be.
mlir::Type crossingType(mlir::Type type);
/// Stores `values`, converted to their crossing types, as storeFrame does.
mlir::Value storeCrossing(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                          mlir::ArrayRef<mlir::Value> values);
/// Loads what storeCrossing stored of `values` from the frame, each with its own type.
llvm::SmallVector<mlir::Value> loadCrossing(mlir::OpBuilder &b, mlir::Location loc,
                                            mlir::Value frame, mlir::ArrayRef<mlir::Value> values);
/// A private function of a frame and two numbers (i64), behind `kernel`; `b` is then at its start.
/// LLVM neither inlines it nor replaces its loops that copy or fill by calls of a library.
mlir::func::FuncOp beginPart(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel,
                             const llvm::Twine &name);

/// Converts an index to i64, and back.
mlir::Value toI64(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index);
mlir::Value toIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value i64);

} // namespace ctxc

#endif // CTXC_LOWERING_CALLFRAME_H
