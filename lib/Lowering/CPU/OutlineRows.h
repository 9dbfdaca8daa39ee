// A loop over the rows of a call as functions that the caller's threads run.
#ifndef CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H
#define CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Replaces loops over the rows of one kernel by calls of functions, which are added behind it.
class RowOutliner {
public:
  explicit RowOutliner(mlir::func::FuncOp kernel) : kernel(kernel), b(kernel.getContext()) {}

  /// A loop that needs a value which cannot be passed to a function stays, with a remark.
  void outline(mlir::scf::ForOp rows);

private:
  using Captured = llvm::ArrayRef<mlir::Value>;
  mlir::func::FuncOp makeRowFunction(mlir::scf::ForOp rows, Captured captured,
                                     llvm::ArrayRef<mlir::OpOperand *> own);
  mlir::func::FuncOp makeRangeFunction(mlir::func::FuncOp row);
  mlir::func::FuncOp makeFunction(mlir::Location loc, llvm::StringRef suffix,
                                  llvm::ArrayRef<mlir::Type> arguments);
  void callFunction(mlir::scf::ForOp rows, mlir::func::FuncOp function, mlir::Value frame);

  mlir::func::FuncOp kernel;
  mlir::OpBuilder b;
  int64_t count = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H
