#include "lib/Lowering/GPU/VectorWriter.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

//===----------------------------------------------------------------------===//
// Components
//===----------------------------------------------------------------------===//

Value VectorWriter::place(const Components &x, Value k) {
  View from{x.view->root, x.view->offset + fixedExtent(x.begin), x.view->strides};
  return placeOf(w, from, row, k);
}

Number VectorWriter::get(const Components &x, Value k) {
  Value element = w.load(x.view->root, place(x, k));
  if (!element.getType().isF64())
    element = arith::ExtFOp::create(w.b, w.loc, w.b.getF64Type(), element);
  return {w, element};
}

void VectorWriter::set(const Components &x, Value k, const Number &value) {
  Type element = cast<MemRefType>(x.view->root.getType()).getElementType();
  if (element.isF64())
    return w.store(value.value(w), x.view->root, place(x, k));
  constexpr double limit = std::numeric_limits<float>::max();
  Value within = max(min(value, limit), -limit).value(w);
  w.store(arith::TruncFOp::create(w.b, w.loc, w.b.getF32Type(), within), x.view->root, place(x, k));
}

Condition VectorWriter::isFinite(const Components &x, Value k) {
  Type i32 = w.b.getI32Type();
  Value exponent = arith::ConstantIntOp::create(w.b, w.loc, 0x7f800000, 32);
  Value bits = arith::BitcastOp::create(w.b, w.loc, i32, w.load(x.view->root, place(x, k)));
  return {&w, arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ne,
                                    arith::AndIOp::create(w.b, w.loc, bits, exponent), exponent)};
}

Number VectorWriter::toNumber(Value k) {
  Value number = arith::IndexCastOp::create(w.b, w.loc, w.b.getI32Type(), k);
  return {w, arith::UIToFPOp::create(w.b, w.loc, w.b.getF64Type(), number)};
}

Value VectorWriter::toIndex(const Number &k) {
  Value number = arith::FPToUIOp::create(w.b, w.loc, w.b.getI32Type(), k.value(w));
  return arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), number);
}

//===----------------------------------------------------------------------===//
// All components
//===----------------------------------------------------------------------===//

SmallVector<Value> VectorWriter::values(const Numbers &numbers) {
  return llvm::map_to_vector(numbers, [&](const Number &n) { return n.value(w); });
}

Numbers VectorWriter::numbers(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return Number(w, value); });
}

void VectorWriter::each(llvm::function_ref<void(Value)> body) {
  w.loop(w.thread, w.index(size), w.index(w.threads), body);
}

Numbers VectorWriter::reduce(ArrayRef<Kind> kinds, llvm::function_ref<Numbers(Value)> terms) {
  auto combine = [&](ValueRange xs, ValueRange ys) {
    SmallVector<Value> all;
    for (auto [kind, a, b] : llvm::zip(kinds, xs, ys)) {
      Number x(w, a), y(w, b);
      all.push_back((kind == Sum ? x + y : kind == Largest ? max(x, y) : min(x, y)).value(w));
    }
    return all;
  };
  Numbers none;
  for (Kind kind : kinds)
    none.push_back(kind == Sum ? 0.0 : kind == Largest ? -huge : huge);
  SmallVector<Value> own =
      w.loop(w.thread, w.index(size), w.index(w.threads), values(none),
             [&](Value k, ValueRange sums) { return combine(sums, values(terms(k))); });
  return numbers(w.combineBlock(own, combine));
}

Number VectorWriter::firstWhere(llvm::function_ref<Condition(Value)> holds) {
  return smallest([&](Value k) { return select(holds(k), toNumber(k), huge); });
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void VectorWriter::when(const Condition &condition, llvm::function_ref<void()> body) {
  w.when(condition.value, body);
}

Numbers VectorWriter::when(const Condition &condition, llvm::function_ref<Numbers()> then,
                           const Numbers &otherwise) {
  SmallVector<Value> no = values(otherwise);
  auto branch =
      scf::IfOp::create(w.b, w.loc, TypeRange(ValueRange(no)), condition.value, /*else=*/true);
  OpBuilder::InsertionGuard guard(w.b);
  w.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(w.b, w.loc, values(then()));
  w.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(w.b, w.loc, no);
  return numbers(branch.getResults());
}

Numbers VectorWriter::repeat(int64_t most, const Numbers &start,
                             llvm::function_ref<Round(Numbers)> body) {
  // Whether to continue is carried from one round to the next, because SPIR-V allows no loops in
  // the region of the condition.
  SmallVector<Value> first = values(start);
  first.push_back(arith::ConstantIntOp::create(w.b, w.loc, 0, 32));
  first.push_back(arith::ConstantIntOp::create(w.b, w.loc, 1, 32));
  SmallVector<Type> types = llvm::to_vector(ValueRange(first).getTypes());
  auto loop = scf::WhileOp::create(
      w.b, w.loc, types, first,
      [&](OpBuilder &b, Location loc, ValueRange carried) {
        Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
        Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, carried.back(), zero);
        scf::ConditionOp::create(b, loc, more, carried);
      },
      [](OpBuilder &, Location, ValueRange) {});
  OpBuilder::InsertionGuard guard(w.b);
  w.b.setInsertionPointToStart(loop.getAfterBody());
  ValueRange carried = loop.getAfterArguments();
  Round round = body(numbers(carried.drop_back(2)));
  Value rounds = arith::AddIOp::create(w.b, w.loc, carried[carried.size() - 2],
                                       arith::ConstantIntOp::create(w.b, w.loc, 1, 32));
  Value limit = arith::ConstantIntOp::create(w.b, w.loc, most, 32);
  Condition left{&w, arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ult, rounds, limit)};
  SmallVector<Value> next = values(round.next);
  next.push_back(rounds);
  next.push_back(arith::ExtUIOp::create(w.b, w.loc, w.b.getI32Type(), (left & !round.done).value));
  scf::YieldOp::create(w.b, w.loc, next);
  return numbers(ValueRange(loop.getResults()).drop_back(2));
}

void VectorWriter::onFirstThread(llvm::function_ref<void()> body) {
  w.when(arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, w.thread, w.index(0)), body);
}
