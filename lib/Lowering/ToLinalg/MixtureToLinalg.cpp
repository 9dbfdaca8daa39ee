// Lowers the ops of mixtures of experts. They work on memory: a bank is passed to the kernel as a
// table of addresses, so that experts which a checkpoint stores one by one are read from where they
// are.
#include "ctxc/Lowering/LinalgArith.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

Value int32(OpBuilder &b, Location l, int64_t x) {
  return arith::ConstantIntOp::create(b, l, x, 32);
}

/// The index of loop `dim` as int32.
Value loopIndex(OpBuilder &b, Location l, int64_t dim) {
  return arith::IndexCastOp::create(b, l, b.getI32Type(), linalg::IndexOp::create(b, l, dim));
}

/// An int32 sum along the last loop of a nest of three, S × shape × n: it adds 1 (or `value`) where
/// `body` holds for the entries of `ins`, whose maps are `maps`.
Value countLast(KernelEmitter &e, int64_t shape, ValueRange ins, ArrayRef<AffineMap> maps,
                KernelEmitter::Body body) {
  Type i32 = e.builder.getI32Type();
  Value zero = linalg::FillOp::create(e.builder, e.loc, ValueRange{int32(e.builder, e.loc, 0)},
                                      ValueRange{e.emptyRows({shape}, 1, i32)})
                   .getResult(0);
  AffineExpr s, i, j;
  bindDims(e.builder.getContext(), s, i, j);
  SmallVector<AffineMap> all(maps);
  all.push_back(AffineMap::get(3, 0, {s, i}, e.builder.getContext()));
  return e.generic(zero, ins, all,
                   {IteratorType::parallel, IteratorType::parallel, IteratorType::reduction},
                   [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                     return arith::AddIOp::create(b, l, a.back(), body(b, l, a));
                   });
}

/// Whether x precedes y in descending order: x is larger, or equal with a lower index.
Value comesBefore(OpBuilder &b, Location l, Value x, Value indexOfX, Value y, Value indexOfY) {
  auto compare = [&](arith::CmpFPredicate p) { return arith::CmpFOp::create(b, l, p, x, y); };
  Value lower = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, indexOfX, indexOfY);
  Value tie = arith::AndIOp::create(b, l, compare(arith::CmpFPredicate::OEQ), lower);
  return arith::OrIOp::create(b, l, compare(arith::CmpFPredicate::OGT), tie);
}

Value isLess(OpBuilder &b, Location l, Value x, int64_t limit) {
  return arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, x, int32(b, l, limit));
}

/// `scores` (S × count), with −∞ for all groups but `keep` of them. The `groups` groups are equal
/// parts; those whose two largest entries have the largest sums are kept.
Value keptGroups(KernelEmitter &e, Value scores, int64_t count, int64_t groups, int64_t keep) {
  MLIRContext *context = e.builder.getContext();
  AffineExpr s, i, j;
  bindDims(context, s, i, j);
  AffineMap own = AffineMap::get(3, 0, {s, i}, context),
            other = AffineMap::get(3, 0, {s, j}, context);
  auto groupOf = [size = count / groups](OpBuilder &b, Location l, Value entry) -> Value {
    return arith::DivUIOp::create(b, l, entry, int32(b, l, size));
  };
  auto areEqual = [](OpBuilder &b, Location l, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, x, y);
  };
  auto asCount = [](OpBuilder &b, Location l, Value is) -> Value {
    return arith::ExtUIOp::create(b, l, b.getI32Type(), is);
  };
  // How many entries of its group precede entry i.
  Value rank = countLast(
      e, count, {scores, scores}, {own, other}, [&](OpBuilder &b, Location l, ValueRange a) {
        Value x = loopIndex(b, l, 2), y = loopIndex(b, l, 1);
        Value near = areEqual(b, l, groupOf(b, l, x), groupOf(b, l, y));
        return asCount(b, l,
                       arith::AndIOp::create(b, l, near, comesBefore(b, l, a[1], x, a[0], y)));
      });
  Value sums = e.generic(e.filled(e.emptyRows({groups}), 0), {scores, rank}, {other, other, own},
                         {IteratorType::parallel, IteratorType::parallel, IteratorType::reduction},
                         [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                           Value mine = areEqual(b, l, groupOf(b, l, loopIndex(b, l, 2)),
                                                 loopIndex(b, l, 1));
                           Value is = arith::AndIOp::create(b, l, mine, isLess(b, l, a[1], 2));
                           Value term = arith::SelectOp::create(b, l, is, a[0], constant(b, l, 0));
                           return add(b, l, a[2], term);
                         });
  Value place =
      countLast(e, groups, {sums, sums}, {own, other}, [&](OpBuilder &b, Location l, ValueRange a) {
        return asCount(b, l, comesBefore(b, l, a[1], loopIndex(b, l, 2), a[0], loopIndex(b, l, 1)));
      });
  AffineMap identity = AffineMap::getMultiDimIdentityMap(2, context);
  return e.generic(e.emptyRows({count}), {scores}, {identity, identity},
                   {IteratorType::parallel, IteratorType::parallel},
                   [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                     Value group = arith::IndexCastOp::create(b, l, b.getIndexType(),
                                                              groupOf(b, l, loopIndex(b, l, 1)));
                     Value at = tensor::ExtractOp::create(
                         b, l, place, ValueRange{linalg::IndexOp::create(b, l, 0), group});
                     return arith::SelectOp::create(b, l, isLess(b, l, at, keep), a[0],
                                                    constant(b, l, -INFINITY));
                   });
}

struct LowerTopK : Lowering<LowerTopK, xf::TopKOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto topK = cast<xf::TopKOp>(op);
    MLIRContext *context = op->getContext();
    int64_t k = topK.getK(), count = ranked(topK.getScores()).getDimSize(0);
    Value scores = e.data(topK.getScores());
    if (topK.getGroups() > 1)
      scores = keptGroups(e, scores, count, topK.getGroups(), topK.getKeep());
    AffineExpr s, i, j;
    bindDims(context, s, i, j);
    AffineMap own = AffineMap::get(3, 0, {s, i}, context),
              other = AffineMap::get(3, 0, {s, j}, context);
    // How many entries precede entry i: larger ones, or equal ones with a lower index.
    Value before = countLast(e, count, {scores, scores}, {own, other},
                             [](OpBuilder &b, Location l, ValueRange a) -> Value {
                               Value is = comesBefore(b, l, a[1], loopIndex(b, l, 2), a[0],
                                                      loopIndex(b, l, 1));
                               return arith::ExtUIOp::create(b, l, b.getI32Type(), is);
                             });
    // The slot of entry i: how many entries with a lower index are selected.
    auto selected = [k](OpBuilder &b, Location l, Value rank) { return isLess(b, l, rank, k); };
    Value slot = countLast(
        e, count, {before}, {other}, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
          Value lower = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, loopIndex(b, l, 2),
                                              loopIndex(b, l, 1));
          Value is = arith::AndIOp::create(b, l, selected(b, l, a[0]), lower);
          return arith::ExtUIOp::create(b, l, b.getI32Type(), is);
        });
    // Slot i holds the selected entry j whose slot is i.
    e.bind(topK, countLast(e, k, {before, slot}, {other, other},
                           [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                             Value here = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq,
                                                                a[1], loopIndex(b, l, 1));
                             Value is = arith::AndIOp::create(b, l, selected(b, l, a[0]), here);
                             return arith::SelectOp::create(b, l, is, loopIndex(b, l, 2),
                                                            int32(b, l, 0));
                           }));
    return success();
  }
};

struct LowerGather : Lowering<LowerGather, xf::GatherOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto gather = cast<xf::GatherOp>(op);
    Value data = e.lookup(gather.getData());
    bool ownRow = e.hasRows(gather.getData());
    int64_t rank = ranked(gather).getRank() + 1; // the rows come first
    AffineExpr s, slot;
    bindDims(op->getContext(), s, slot);
    e.bind(gather,
           e.generic(e.emptyRows(ranked(gather).getShape()), {e.lookup(gather.getSelected())},
                     {AffineMap::get(rank, 0, {s, slot}, op->getContext()),
                      AffineMap::getMultiDimIdentityMap(rank, op->getContext())},
                     SmallVector<IteratorType>(rank, IteratorType::parallel),
                     [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                       SmallVector<Value> at;
                       if (ownRow)
                         at.push_back(linalg::IndexOp::create(b, l, 0));
                       at.push_back(arith::IndexCastOp::create(b, l, b.getIndexType(), a[0]));
                       if (rank == 3)
                         at.push_back(linalg::IndexOp::create(b, l, 2));
                       Value x = tensor::ExtractOp::create(b, l, data, at);
                       return KernelEmitter::widen(b, l, x);
                     }));
    return success();
  }
};

struct LowerCombine : Lowering<LowerCombine, xf::CombineOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto combine = cast<xf::CombineOp>(op);
    MLIRContext *context = op->getContext();
    int64_t rank = ranked(combine.getData()).getRank() + 1; // S, the result's loops, the slots
    SmallVector<AffineExpr> result, data;
    for (int64_t i = 0; i + 1 < rank; ++i)
      result.push_back(getAffineDimExpr(i, context));
    AffineExpr slot = getAffineDimExpr(rank - 1, context);
    data = result;
    data.insert(data.begin() + 1, slot);
    SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
    iterators.back() = IteratorType::reduction;
    // Adds the slots up in their order, one after the other.
    e.bind(combine, e.generic(e.filled(e.emptyRows(ranked(combine).getShape()), 0),
                              {e.data(combine.getWeights()), e.data(combine.getData())},
                              {AffineMap::get(rank, 0, {result[0], slot}, context),
                               AffineMap::get(rank, 0, data, context),
                               AffineMap::get(rank, 0, result, context)},
                              iterators, [](OpBuilder &b, Location l, ValueRange a) {
                                return add(b, l, a[2], mul(b, l, a[0], a[1]));
                              }));
    return success();
  }
};

struct LowerOuter : Lowering<LowerOuter, xf::OuterOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto outer = cast<xf::OuterOp>(op);
    MLIRContext *context = op->getContext();
    AffineExpr s, i, j;
    bindDims(context, s, i, j);
    e.bind(outer,
           e.generic(e.emptyRows(ranked(outer).getShape()),
                     {e.data(outer.getWeights()), e.data(outer.getData())},
                     {AffineMap::get(3, 0, {s, i}, context), AffineMap::get(3, 0, {s, j}, context),
                      AffineMap::getMultiDimIdentityMap(3, context)},
                     SmallVector<IteratorType>(3, IteratorType::parallel),
                     [](OpBuilder &b, Location l, ValueRange a) { return mul(b, l, a[0], a[1]); }));
    return success();
  }
};

struct LowerExpertLinear : Lowering<LowerExpertLinear, xf::ExpertLinearOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto linear = cast<xf::ExpertLinearOp>(op);
    FailureOr<Value> y = e.expertLinear(op, linear.getBank(), e.lookup(linear.getSelected()),
                                        e.data(linear.getData()), linear.getTransposed());
    if (failed(y))
      return failure();
    e.bind(linear, *y);
    return success();
  }
};

} // namespace

FailureOr<Value> KernelEmitter::expertLinear(Operation *op, Value bank, Value selected, Value x,
                                             bool transposed, int64_t factor) {
  auto param = bank.getDefiningOp<xf::ParamOp>();
  if (!param)
    return op->emitOpError("with a computed bank has no compiled kernel; the reference engine "
                           "runs it");
  RankedTensorType stored = ranked(bank);
  SmallVector<int64_t> shape{ShapedType::kDynamic, ranked(selected).getDimSize(1),
                             stored.getDimSize(transposed ? 2 : 1)};
  Value count = rows();
  if (factor != 1)
    count = arith::MulIOp::create(builder, loc, count, index(factor));
  Value table = argument(KernelArgKind::Bank, param.getName(), 0);
  Value vectors = read(x), experts = read(selected);
  Value y = memref::AllocOp::create(builder, loc, MemRefType::get(shape, builder.getF32Type()),
                                    ValueRange{count});
  auto products =
      kernel::ExpertsOp::create(builder, loc, table, vectors, experts, y, stored, transposed);
  kernel::copyIntegerMark(param, products);
  return bufferization::ToTensorOp::create(builder, loc,
                                           RankedTensorType::get(shape, builder.getF32Type()), y,
                                           /*restrict=*/true)
      .getResult();
}

namespace ctxc {
void registerMixtureLoweringModels(MLIRContext *context) {
  xf::TopKOp::attachInterface<LowerTopK>(*context);
  xf::GatherOp::attachInterface<LowerGather>(*context);
  xf::ExpertLinearOp::attachInterface<LowerExpertLinear>(*context);
  xf::CombineOp::attachInterface<LowerCombine>(*context);
  xf::OuterOp::attachInterface<LowerOuter>(*context);
}
} // namespace ctxc
