//===- SupportCall.h - calls of the kernel support functions --------------===//
//
// Some ops become calls of C functions of ctxc/Numerics for each row (kernel.call), which fill
// memory.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_SUPPORTCALL_H
#define CTXC_LOWERING_SUPPORTCALL_H

#include "ctxc/Lowering/KernelEmitter.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace ctxc {

/// Calls `function` for each row; tensors are read where the call stands.
inline void callForRows(KernelEmitter &e, kernel::SupportFunction function,
                        llvm::ArrayRef<kernel::Number> numbers,
                        llvm::ArrayRef<mlir::Value> operands) {
  auto memory = llvm::map_to_vector(operands, [&](mlir::Value each) {
    return mlir::isa<mlir::TensorType>(each.getType()) ? e.read(each) : each;
  });
  kernel::CallOp::create(e.builder, e.loc, function, numbers, memory);
}

/// Memory of S × d float32 for a support function to fill.
inline mlir::Value callResult(KernelEmitter &e, int64_t d) {
  auto type = mlir::MemRefType::get({mlir::ShapedType::kDynamic, d}, e.builder.getF32Type());
  return mlir::memref::AllocOp::create(e.builder, e.loc, type, mlir::ValueRange{e.rows()});
}

inline mlir::Value readResult(KernelEmitter &e, mlir::Value memory) {
  auto type = mlir::cast<mlir::MemRefType>(memory.getType());
  return mlir::bufferization::ToTensorOp::create(
      e.builder, e.loc, mlir::RankedTensorType::get(type.getShape(), type.getElementType()), memory,
      /*restrict=*/true);
}

/// Rows × n numbers as rows × shape, which has n.
inline mlir::Value expandRows(KernelEmitter &e, mlir::Value flat, llvm::ArrayRef<int64_t> shape) {
  if (shape.size() == 1)
    return flat;
  llvm::SmallVector<mlir::ReassociationIndices> groups{{0}, {}};
  llvm::SmallVector<int64_t> all{mlir::ShapedType::kDynamic};
  llvm::SmallVector<mlir::OpFoldResult> sizes{e.rows()};
  for (int64_t size : shape) {
    groups.back().push_back(all.size());
    all.push_back(size);
    sizes.push_back(e.builder.getIndexAttr(size));
  }
  return mlir::tensor::ExpandShapeOp::create(
      e.builder, e.loc, mlir::RankedTensorType::get(all, e.builder.getF32Type()), flat, groups,
      sizes);
}

} // namespace ctxc

#endif // CTXC_LOWERING_SUPPORTCALL_H
