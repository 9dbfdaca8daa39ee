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

} // namespace ctxc

#endif // CTXC_LOWERING_SUPPORTCALL_H
