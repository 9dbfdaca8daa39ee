// The base class of emitters that write loops over memory: loops, index arithmetic, vector loads
// and stores.
#ifndef CTXC_LIB_LOWERING_LOOPBUILDER_H
#define CTXC_LIB_LOWERING_LOOPBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ctxc {

/// Values are of type index and unsigned, unless stated otherwise.
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
  /// The largest multiple of `of` that is at most x.
  Value multiples(Value x, int64_t of) { return times(over(x, of), of); }
  /// Whether x is less than y (i1).
  Value isLess(Value x, Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::ult, x, y);
  }

  /// Calls body(i) inside a loop over i from `from` to `to` by `step`.
  mlir::scf::ForOp forRange(Value from, Value to, int64_t step,
                            llvm::function_ref<void(Value)> body) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, index(step));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
    return loop;
  }
  /// The same loop with values carried from one iteration to the next.
  using Values = llvm::SmallVector<Value>;
  Values carried(Value from, Value to, int64_t step, Values init,
                 llvm::function_ref<Values(mlir::ValueRange, Value)> body) {
    auto loop = mlir::scf::ForOp::create(b, loc, from, to, index(step), init);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    mlir::scf::YieldOp::create(b, loc, body(loop.getRegionIterArgs(), loop.getInductionVar()));
    return Values(loop.getResults());
  }
  /// Divides a range into streams of one length. Calls `body` with one index of each stream at a
  /// time, then with each of those that do not divide.
  void streamed(Value begin, Value end, int64_t streams,
                llvm::function_ref<void(llvm::ArrayRef<Value>)> body) {
    Value length = over(sub(end, begin), streams);
    forRange(index(0), length, 1, [&](Value i) {
      Values at{add(begin, i)};
      while (int64_t(at.size()) < streams)
        at.push_back(add(at.back(), length));
      body(at);
    });
    forRange(add(begin, times(length, streams)), end, 1, [&](Value row) { body(row); });
  }
  /// Calls body(first, count) in a loop over pairs of `total`, and where one is left over, with it.
  void inPairs(Value total, llvm::function_ref<void(Value, int64_t)> body) {
    Value pairs = multiples(total, 2);
    forRange(index(0), pairs, 2, [&](Value first) { body(first, 2); });
    forRange(pairs, total, 1, [&](Value last) { body(last, 1); });
  }
  /// Divides a range into streams, `ofOne` of them if `vectors` is 1 and else `ofTwo`. Calls `body`
  /// as `streamed` does, and what it returns for each two vectors and the one that is left over.
  using OfVectors = llvm::unique_function<void(Value first, int64_t count)>;
  void streamedInPairs(Value begin, Value end, Value vectors, int64_t ofOne, int64_t ofTwo,
                       llvm::function_ref<OfVectors(llvm::ArrayRef<Value>)> body) {
    auto inAll = [&](int64_t streams) {
      streamed(begin, end, streams, [&](llvm::ArrayRef<Value> at) { inPairs(vectors, body(at)); });
    };
    if (ofOne == ofTwo)
      return inAll(ofTwo);
    Value isOne =
        mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq, vectors, index(1));
    auto branch = mlir::scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/true);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    streamed(begin, end, ofOne, [&](llvm::ArrayRef<Value> at) { body(at)(index(0), 1); });
    b.setInsertionPointToStart(branch.elseBlock());
    inAll(ofTwo);
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
  /// Loads all lanes where `mask` is null; lanes that the mask leaves out are zero.
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
  /// A mask of the first `count` of `size` lanes.
  Value firstLanes(int64_t size, int64_t count) {
    return mlir::vector::ConstantMaskOp::create(
        b, loc, mlir::VectorType::get({size}, b.getI1Type()), llvm::ArrayRef<int64_t>{count});
  }
  /// Prefetches the line at this address into the second-level cache; in the first-level cache it
  /// would arrive too early and be evicted.
  void prefetch(Value memref, mlir::ValueRange at) {
    mlir::memref::PrefetchOp::create(b, loc, memref, at, /*isWrite=*/false,
                                     /*localityHint=*/2, /*isDataCache=*/true);
  }

  mlir::OpBuilder b;
  mlir::Location loc;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_LOOPBUILDER_H
