// A loop over the rows of a call as functions that the caller's threads run.
#ifndef CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H
#define CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H

#include "lib/Lowering/CPU/RowWise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// A loop that becomes functions.
struct OutlinedLoop {
  mlir::scf::ForOp rows;
  bool isCausal;                ///< later rows take longer
  std::optional<Groups> groups; ///< what the loops marked kernel.group_loop go over
};

/// Replaces loops over the rows of one kernel by calls of functions, which are added behind it.
class RowOutliner {
public:
  explicit RowOutliner(mlir::func::FuncOp kernel) : kernel(kernel), b(kernel.getContext()) {}

  /// A loop that needs a value which cannot be passed to a function stays, with a remark.
  void outline(OutlinedLoop loop);

private:
  using Captured = llvm::ArrayRef<mlir::Value>;
  mlir::func::FuncOp makeRowFunction(OutlinedLoop loop, Captured captured,
                                     llvm::ArrayRef<mlir::OpOperand *> own,
                                     mlir::LLVM::LLVMStructType frame);
  mlir::func::FuncOp makeRangeFunction(OutlinedLoop loop, mlir::func::FuncOp row,
                                       mlir::LLVM::LLVMStructType frame,
                                       std::optional<int32_t> countField);
  mlir::func::FuncOp makeGroupsFunction(OutlinedLoop loop, mlir::func::FuncOp row);
  mlir::func::FuncOp makeFunction(mlir::Location loc, llvm::StringRef suffix,
                                  llvm::ArrayRef<mlir::Type> arguments);
  void callFunction(OutlinedLoop loop, mlir::func::FuncOp function, mlir::func::FuncOp ofGroups,
                    mlir::Value frame);

  mlir::func::FuncOp kernel;
  mlir::OpBuilder b;
  int64_t count = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_OUTLINEROWS_H
