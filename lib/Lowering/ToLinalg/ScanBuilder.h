//===- ScanBuilder.h - recurrences as kernel.scan -------------------------===//
#ifndef CTXC_LOWERING_SCANBUILDER_H
#define CTXC_LOWERING_SCANBUILDER_H

#include "ctxc/Lowering/LinalgArith.h"

namespace ctxc {

/// A kernel.scan of an op, whose region the caller writes in linalg on memory.
class ScanBuilder {
public:
  ScanBuilder(mlir::Operation *op, KernelEmitter &e, llvm::ArrayRef<int64_t> carried)
      : op(op), e(e), carried(carried) {}

  /// Reads a tensor of (rows, heads, …), of which `heads` of the scan's parts share one in turn.
  void readRows(mlir::Value tensor, int64_t parts, int64_t heads) {
    mlir::AffineExpr s, p;
    bindDims(op->getContext(), s, p);
    add(tensor, {s, (p * heads).floorDiv(parts)});
  }
  /// Reads a tensor of (parts, …), which all rows share.
  void readShared(mlir::Value tensor) {
    mlir::AffineExpr s, p;
    bindDims(op->getContext(), s, p);
    add(tensor, {p});
  }

  /// Writes the op with results of (rows, parts, …), and returns them as a tensor. `body` gets the
  /// state, what is read, and the result.
  mlir::Value
  build(llvm::ArrayRef<int64_t> shape,
        llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)> body);

private:
  void add(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at) {
    tensors.push_back(tensor);
    maps.push_back(mlir::AffineMap::get(2, 0, at, op->getContext()));
  }
  mlir::Value reshaped(mlir::Value memref) {
    return memref && llvm::ArrayRef<int64_t>(carried) !=
                         mlir::cast<mlir::MemRefType>(memref.getType()).getShape()
               ? asParts(memref)
               : memref;
  }
  mlir::Value asParts(mlir::Value memref);

  mlir::Operation *op;
  KernelEmitter &e;
  llvm::SmallVector<int64_t> carried;
  llvm::SmallVector<mlir::Value> tensors; ///< that are read
  llvm::SmallVector<mlir::AffineMap> maps;
};

/// A linalg.generic on memory, over the loops of `iterators`.
void overMemory(mlir::OpBuilder &b, mlir::Location l, mlir::ValueRange ins, mlir::Value out,
                llvm::ArrayRef<mlir::AffineMap> maps,
                llvm::ArrayRef<mlir::utils::IteratorType> iterators, KernelEmitter::Body body);

} // namespace ctxc

#endif // CTXC_LOWERING_SCANBUILDER_H
