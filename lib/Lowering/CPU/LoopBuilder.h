// What emits loops over memory: loops, and the arithmetic of their indices.
#ifndef CTXC_LIB_LOWERING_LOOPBUILDER_H
#define CTXC_LIB_LOWERING_LOOPBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ctxc {

/// The base of emitters. All values are of type index, and unsigned, unless said otherwise.
class LoopBuilder {
protected:
  using Value = mlir::Value;
  LoopBuilder(const mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  Value index(int64_t i) { return mlir::arith::ConstantIndexOp::create(b, loc, i); }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, loc, x, y); }
  Value times(Value x, int64_t y) { return mlir::arith::MulIOp::create(b, loc, x, index(y)); }
  Value over(Value x, int64_t y) { return mlir::arith::DivUIOp::create(b, loc, x, index(y)); }
  Value least(Value x, Value y) { return mlir::arith::MinUIOp::create(b, loc, x, y); }
  /// The largest multiple of `of` that x reaches.
  Value multiples(Value x, int64_t of) { return times(over(x, of), of); }
  /// Whether x is less than y (i1).
  Value isLess(Value x, Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::ult, x, y);
  }

  /// body(i) for i from `from` to `to` in steps.
  mlir::scf::ForOp forRange(Value from, Value to, int64_t step,
                            llvm::function_ref<void(Value)> body) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, index(step));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
    return loop;
  }
  /// The same with values that each step makes of those before.
  using Values = llvm::SmallVector<Value>;
  Values carried(Value from, Value to, int64_t step, Values init,
                 llvm::function_ref<Values(mlir::ValueRange, Value)> body) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, index(step), init);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    mlir::scf::YieldOp::create(b, loc, body(loop.getRegionIterArgs(), loop.getInductionVar()));
    return Values(loop.getResults());
  }
  void ifThen(Value condition, llvm::function_ref<void()> body) {
    auto branch = mlir::scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  Value zeros(mlir::VectorType type) {
    return mlir::arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  }
  /// `mask` null: all lanes. Zero where it leaves some out.
  Value load(mlir::VectorType type, Value memref, mlir::ValueRange at, Value mask) {
    if (!mask)
      return mlir::vector::LoadOp::create(b, loc, type, memref, at);
    return mlir::vector::MaskedLoadOp::create(b, loc, type, memref, at, mask, zeros(type));
  }
  void store(Value vector, Value memref, mlir::ValueRange at, Value mask) {
    if (mask)
      mlir::vector::MaskedStoreOp::create(b, loc, memref, at, mask, vector);
    else
      mlir::vector::StoreOp::create(b, loc, vector, memref, at);
  }
  /// The first `count` of `size` lanes.
  Value firstLanes(int64_t size, int64_t count) {
    return mlir::vector::ConstantMaskOp::create(
        b, loc, mlir::VectorType::get({size}, b.getI1Type()), llvm::ArrayRef<int64_t>{count});
  }
  /// Asks for a line of memory, into the second-level cache: to the first it would come too early.
  void ask(Value memref, mlir::ValueRange at) {
    mlir::memref::PrefetchOp::create(b, loc, memref, at, /*isWrite=*/false,
                                     /*localityHint=*/2, /*isDataCache=*/true);
  }

  mlir::OpBuilder b;
  mlir::Location loc;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_LOOPBUILDER_H
