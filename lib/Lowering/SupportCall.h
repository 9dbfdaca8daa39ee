//===- SupportCall.h - calls of the kernel support functions --------------===//
//
// What a kernel calls is plain C (ctxc/Numerics); here is how an op's lowering
// emits such a call, and memory for it to fill.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_SUPPORTCALL_H
#define CTXC_LOWERING_SUPPORTCALL_H

#include "ctxc/Lowering/KernelEmitter.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace ctxc {

/// Builds the arguments of a call: numbers by value, memory by address.
class SupportCall {
public:
  SupportCall(KernelEmitter &e, llvm::StringRef function) : e(e), function(function) {}

  SupportCall &i32(int64_t x) {
    return add(mlir::arith::ConstantIntOp::create(e.builder, e.loc, x, 32));
  }
  SupportCall &i64(int64_t x) {
    return add(mlir::arith::ConstantIntOp::create(e.builder, e.loc, x, 64));
  }
  SupportCall &f32(double x) { return add(e.constant(x)); }
  SupportCall &size(mlir::Value index) {
    return add(mlir::arith::IndexCastOp::create(e.builder, e.loc, e.builder.getI64Type(), index));
  }
  SupportCall &tensor(mlir::Value tensor) {
    return add(addressOf(e.builder, e.loc, e.read(tensor)));
  }
  /// The address `bytes` into a memref of identity layout.
  SupportCall &memory(mlir::Value memref, int64_t bytes) {
    mlir::Value address =
        mlir::memref::ExtractAlignedPointerAsIndexOp::create(e.builder, e.loc, memref);
    if (bytes)
      address = mlir::arith::AddIOp::create(e.builder, e.loc, address, e.index(bytes));
    mlir::Value integer =
        mlir::arith::IndexCastOp::create(e.builder, e.loc, e.builder.getI64Type(), address);
    return add(mlir::LLVM::IntToPtrOp::create(
        e.builder, e.loc, mlir::LLVM::LLVMPointerType::get(e.builder.getContext()), integer));
  }

  void emit() {
    auto module = e.kernel->getParentOfType<mlir::ModuleOp>();
    if (!module.lookupSymbol(function)) {
      mlir::OpBuilder b(module.getBodyRegion());
      auto declaration = mlir::func::FuncOp::create(
          b, e.loc, function, b.getFunctionType(mlir::TypeRange(mlir::ValueRange(arguments)), {}));
      declaration.setPrivate();
    }
    mlir::func::CallOp::create(e.builder, e.loc, function, mlir::TypeRange(), arguments);
  }

private:
  SupportCall &add(mlir::Value v) {
    arguments.push_back(v);
    return *this;
  }
  KernelEmitter &e;
  llvm::StringRef function;
  llvm::SmallVector<mlir::Value> arguments;
};

/// Memory of S × d floats for a support function to fill.
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
