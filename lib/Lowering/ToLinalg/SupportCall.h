//===- SupportCall.h - calls of the kernel support functions --------------===//
//
// Kernels call plain C functions (ctxc/Numerics). An op's lowering uses this class to emit such
// calls, one for each row, and the memory that they fill.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_SUPPORTCALL_H
#define CTXC_LOWERING_SUPPORTCALL_H

#include "ctxc/Lowering/KernelEmitter.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Builds the arguments of a call: numbers are passed by value, memory by address. The call is made
/// once for each row; operands that have rows are passed by the address of that row.
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
  SupportCall &tensor(mlir::Value tensor) {
    return add(addressOf(e.builder, e.loc, e.read(tensor)), rowBytes(tensor.getType()));
  }
  /// Passes the address at `bytes` bytes into a memref of identity layout.
  SupportCall &memory(mlir::Value memref, int64_t bytes) {
    mlir::Value address =
        mlir::memref::ExtractAlignedPointerAsIndexOp::create(e.builder, e.loc, memref);
    if (bytes)
      address = mlir::arith::AddIOp::create(e.builder, e.loc, address, e.index(bytes));
    mlir::Value integer = toI64(e.builder, e.loc, address);
    return add(
        mlir::LLVM::IntToPtrOp::create(
            e.builder, e.loc, mlir::LLVM::LLVMPointerType::get(e.builder.getContext()), integer),
        rowBytes(memref.getType()));
  }

  void emit() {
    mlir::SmallVector<mlir::Value> operands = llvm::to_vector(llvm::make_first_range(arguments));
    auto module = e.kernel->getParentOfType<mlir::ModuleOp>();
    if (!module.lookupSymbol(function)) {
      mlir::OpBuilder b(module.getBodyRegion());
      auto declaration = mlir::func::FuncOp::create(
          b, e.loc, function, b.getFunctionType(mlir::TypeRange(mlir::ValueRange(operands)), {}));
      declaration.setPrivate();
    }
    mlir::OpBuilder &b = e.builder;
    auto loop = mlir::scf::ForOp::create(b, e.loc, e.index(0), e.rows(), e.index(1));
    kernel::mark<kernel::RowLoop>(loop);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    mlir::Value row = toI64(b, e.loc, loop.getInductionVar());
    for (auto [operand, argument] : llvm::zip(operands, arguments)) {
      if (!argument.second)
        continue;
      mlir::Value bytes = mlir::arith::ConstantIntOp::create(b, e.loc, argument.second, 64);
      bytes = mlir::arith::MulIOp::create(b, e.loc, row, bytes);
      operand = mlir::LLVM::GEPOp::create(b, e.loc, operand.getType(), b.getI8Type(), operand,
                                          mlir::ArrayRef<mlir::LLVM::GEPArg>{bytes});
    }
    mlir::func::CallOp::create(b, e.loc, function, mlir::TypeRange(), operands);
  }

private:
  /// The distance between two rows in bytes; 0 for a type without rows.
  static int64_t rowBytes(mlir::Type type) {
    auto shaped = mlir::cast<mlir::ShapedType>(type);
    if (shaped.getRank() == 0 || !shaped.isDynamicDim(0))
      return 0;
    return mlir::ShapedType::getNumElements(shaped.getShape().drop_front()) *
           shaped.getElementTypeBitWidth() / 8;
  }
  SupportCall &add(mlir::Value v, int64_t bytes = 0) {
    arguments.push_back({v, bytes});
    return *this;
  }
  KernelEmitter &e;
  llvm::StringRef function;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> arguments;
};

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
