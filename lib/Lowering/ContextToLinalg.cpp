// The compiled form of what reads positions and the context: rotary embeddings,
// and attention over a cache that is written in place.
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

struct LowerRotary : Lowering<LowerRotary, xf::RotaryOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto rotary = cast<xf::RotaryOp>(op);
    MLIRContext *context = op->getContext();
    Value x = e.data(rotary.getData()), f = e.lookup(rotary.getFrequencies());
    int64_t n = ranked(rotary.getFrequencies()).getDimSize(0), heads = ranked(rotary).getDimSize(0);
    bool own = e.hasRows(rotary.getFrequencies()); // computed, each row's own
    bool half = rotary.getStyle() == xf::RotaryStyle::half;
    float amplitude = rotary.getAmplitude().convertToFloat();

    AffineExpr s, h, i;
    bindDims(context, s, h, i);
    AffineExpr s2, i2;
    bindDims(context, s2, i2);
    auto table = [&](auto function) {
      return e.generic(
          e.emptyRows({n}), {e.positions(), f},
          {AffineMap::get(2, 0, {s2}, context),
           own ? AffineMap::get(2, 0, {s2, i2}, context) : AffineMap::get(2, 0, {i2}, context),
           AffineMap::get(2, 0, {s2, i2}, context)},
          {IteratorType::parallel, IteratorType::parallel},
          [&](OpBuilder &b, Location l, ValueRange a) -> Value {
            Value p = arith::SIToFPOp::create(b, l, b.getF32Type(), a[0]);
            Value turned = function(b, l, mul(b, l, p, a[1]));
            return amplitude == 1 ? turned : mul(b, l, turned, constant(b, l, amplitude));
          });
    };
    Value cosine = table(
        [](OpBuilder &b, Location l, Value x) -> Value { return math::CosOp::create(b, l, x); });
    Value sine = table(
        [](OpBuilder &b, Location l, Value x) -> Value { return math::SinOp::create(b, l, x); });

    Value first = slice(e, x, 2, 0, n, half ? 1 : 2);
    Value second = slice(e, x, 2, half ? n : 1, n, half ? 1 : 2);
    auto rotate = [&](double sign, Value a, Value b) {
      AffineMap full = AffineMap::getMultiDimIdentityMap(3, context);
      AffineMap angle = AffineMap::get(3, 0, {s, i}, context);
      return e.generic(e.emptyRows({heads, n}), {a, b, cosine, sine},
                       {full, full, angle, angle, full},
                       SmallVector<IteratorType>(3, IteratorType::parallel),
                       [&](OpBuilder &builder, Location l, ValueRange v) -> Value {
                         Value p = mul(builder, l, v[0], v[2]), q = mul(builder, l, v[1], v[3]);
                         return sign < 0 ? sub(builder, l, p, q) : add(builder, l, p, q);
                       });
    };
    Value result = insert(e, rotate(-1, first, second), x, 2, 0, half ? 1 : 2);
    result = insert(e, rotate(+1, second, first), result, 2, half ? n : 1, half ? 1 : 2);
    e.bind(rotary, result);
    return success();
  }
};

/// The last S rows of a state become `fresh`; all its rows are returned.
Value extendState(KernelEmitter &e, Value memref, Value fresh, Value visible) {
  OpBuilder &b = e.builder;
  auto type = cast<MemRefType>(memref.getType());
  Value state = bufferization::ToTensorOp::create(
      b, e.loc, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
      /*restrict=*/true, /*writable=*/true);
  Value seen = arith::SubIOp::create(b, e.loc, visible, e.rows());
  SmallVector<OpFoldResult> offsets{seen}, sizes{e.rows()},
      strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t d : type.getShape().drop_front()) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(d));
  }
  Value extended = tensor::InsertSliceOp::create(b, e.loc, fresh, state, offsets, sizes, strides);
  e.store(extended, memref); // in place: the tensor is the memref
  return extended;
}

/// To nearest, ties to even, by the bits of a finite number: a conversion would need a runtime
/// library.
Value roundedToBf16(OpBuilder &b, Location l, Value x) {
  Type i32 = b.getI32Type();
  auto bits = [&](int64_t value) -> Value { return arith::ConstantIntOp::create(b, l, value, 32); };
  Value word = arith::BitcastOp::create(b, l, i32, x);
  Value odd = arith::AndIOp::create(b, l, arith::ShRUIOp::create(b, l, word, bits(16)), bits(1));
  Value half = arith::AddIOp::create(b, l, odd, bits(0x7fff));
  Value rounded = arith::AndIOp::create(b, l, arith::AddIOp::create(b, l, word, half),
                                        bits(int32_t(0xffff0000)));
  return arith::BitcastOp::create(b, l, b.getF32Type(), rounded);
}

/// What a slope adds to the product of a query and the key at `position`.
Value slopeBias(OpBuilder &b, Location l, Value slope, Value position, bool rounded) {
  Value place = arith::SIToFPOp::create(b, l, b.getF32Type(), position);
  if (!rounded)
    return mul(b, l, slope, place);
  Value product = mul(b, l, roundedToBf16(b, l, slope), roundedToBf16(b, l, place));
  return roundedToBf16(b, l, product);
}

struct LowerAttention : Lowering<LowerAttention, xf::AttentionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto attention = cast<xf::AttentionOp>(op);
    OpBuilder &b = e.builder;
    MLIRContext *context = op->getContext();
    StringRef stream = attention.getStateStream();
    Value visible = e.visible(stream);
    SmallVector<Value> memrefs = e.states(op);
    Value keys = extendState(e, memrefs[0], e.data(attention.getKey()), visible);
    Value values = extendState(e, memrefs[1], e.data(attention.getValue()), visible);

    int64_t heads = ranked(attention.getQuery()).getDimSize(0),
            width = ranked(attention.getQuery()).getDimSize(1);
    int64_t groups = ranked(attention.getKey()).getDimSize(0),
            out = ranked(attention).getDimSize(1);
    int64_t repeat = heads / groups;
    SmallVector<ReassociationIndices> split{{0}, {1, 2}, {3}};
    auto grouped = [&](int64_t last) {
      return RankedTensorType::get({ShapedType::kDynamic, groups, repeat, last}, b.getF32Type());
    };
    auto groupedSizes = [&](int64_t last) {
      return SmallVector<OpFoldResult>{e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat),
                                       b.getIndexAttr(last)};
    };
    Value query = tensor::ExpandShapeOp::create(
        b, e.loc, grouped(width), e.data(attention.getQuery()), split, groupedSizes(width));

    auto par = IteratorType::parallel, red = IteratorType::reduction;
    AffineExpr s, g, r, t, d;
    bindDims(context, s, g, r, t, d);
    auto map5 = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(5, 0, exprs, context); };
    SmallVector<OpFoldResult> scoreSizes{e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat),
                                         visible};
    Value empty = tensor::EmptyOp::create(b, e.loc, scoreSizes, b.getF32Type());
    auto accumulate = [](OpBuilder &nested, Location l, ValueRange a) -> Value {
      Value product = arith::MulFOp::create(nested, l, a[0], a[1], kFast);
      return arith::AddFOp::create(nested, l, a[2], product, kFast);
    };
    Value scores = e.generic(e.filled(empty, 0), {query, keys},
                             {map5({s, g, r, d}), map5({t, g, d}), map5({s, g, r, t})},
                             {par, par, par, par, red}, accumulate);

    // Scaled, capped, and −∞ where the token at slot t is not visible from row s.
    AffineMap identity = AffineMap::getMultiDimIdentityMap(4, context);
    SmallVector<Value> ins{scores, e.positions(), e.slots(stream)};
    SmallVector<AffineMap> maps{identity, AffineMap::get(4, 0, {s}, context),
                                AffineMap::get(4, 0, {t}, context)};
    if (attention.getWindow()) {
      ins.push_back(e.lookup(attention.getWindow()));
      maps.push_back(AffineMap::get(4, 0, {b.getAffineConstantExpr(0)}, context));
    }
    if (Value slopes = attention.getSlopes()) {
      ins.push_back(e.hasRows(slopes) ? groupedRows(slopes, groups, repeat, e)
                                      : oneRow(slopes, groups, repeat, e));
      maps.push_back(e.hasRows(slopes) ? AffineMap::get(4, 0, {s, g, r}, context)
                                       : AffineMap::get(4, 0, {g, r}, context));
    }
    maps.push_back(identity);
    double scale = attention.getScale().convertToFloat();
    auto score = [&](OpBuilder &n, Location l, Value product) {
      Value s = mul(n, l, product, constant(n, l, scale));
      return attention.getSoftcap() ? softcap(n, l, s, attention.getSoftcap()->convertToFloat())
                                    : s;
    };
    auto biased = [&](OpBuilder &n, Location l, ValueRange a) -> Value {
      if (!attention.getSlopes())
        return a[0];
      return add(n, l, a[0], slopeBias(n, l, a[a.size() - 2], a[2], attention.getRounded()));
    };
    empty = tensor::EmptyOp::create(b, e.loc, scoreSizes, b.getF32Type());
    scores = e.generic(
        empty, ins, maps, {par, par, par, par},
        [&](OpBuilder &n, Location l, ValueRange a) -> Value {
          if (attention.getBidirectional())
            return score(n, l, biased(n, l, a));
          Value distance = arith::SubIOp::create(n, l, a[1], a[2]);
          Value seen = arith::CmpIOp::create(n, l, arith::CmpIPredicate::sge, distance,
                                             arith::ConstantIntOp::create(n, l, 0, 32));
          if (attention.getWindow()) {
            Value window = arith::TruncIOp::create(n, l, n.getI32Type(), a[3]);
            Value unlimited = arith::CmpIOp::create(n, l, arith::CmpIPredicate::eq, window,
                                                    arith::ConstantIntOp::create(n, l, 0, 32));
            Value near = arith::CmpIOp::create(n, l, arith::CmpIPredicate::slt, distance, window);
            seen = arith::AndIOp::create(n, l, seen, arith::OrIOp::create(n, l, unlimited, near));
          }
          return arith::SelectOp::create(n, l, seen, score(n, l, biased(n, l, a)),
                                         constant(n, l, -INFINITY));
        });
    Value weights = softmax(e, scores, sinks(attention, groups, repeat, e));

    // e is the innermost loop, so that the values are read along their rows.
    AffineExpr x = b.getAffineDimExpr(4);
    Value mixed =
        e.generic(e.filled(tensor::EmptyOp::create(b, e.loc, groupedSizes(out), b.getF32Type()), 0),
                  {weights, values}, {map5({s, g, r, t}), map5({t, g, x}), map5({s, g, r, x})},
                  {par, par, par, red, par}, accumulate);
    e.bind(attention, tensor::CollapseShapeOp::create(b, e.loc, mixed, split));
    return success();
  }

  /// One number for each head as (groups, repeat); and a row of them for each token.
  static Value oneRow(Value heads, int64_t groups, int64_t repeat, KernelEmitter &e) {
    OpBuilder &b = e.builder;
    return tensor::ExpandShapeOp::create(
        b, e.loc, RankedTensorType::get({groups, repeat}, b.getF32Type()), e.lookup(heads),
        SmallVector<ReassociationIndices>{{0, 1}},
        SmallVector<OpFoldResult>{b.getIndexAttr(groups), b.getIndexAttr(repeat)});
  }
  static Value groupedRows(Value heads, int64_t groups, int64_t repeat, KernelEmitter &e) {
    OpBuilder &b = e.builder;
    return tensor::ExpandShapeOp::create(
        b, e.loc, RankedTensorType::get({ShapedType::kDynamic, groups, repeat}, b.getF32Type()),
        e.data(heads), SmallVector<ReassociationIndices>{{0}, {1, 2}},
        SmallVector<OpFoldResult>{e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat)});
  }
  /// The scores of the sinks, for each row; null where there are none.
  static Value sinks(xf::AttentionOp attention, int64_t groups, int64_t repeat, KernelEmitter &e) {
    Value sinks = attention.getSinks();
    return sinks ? groupedRows(sinks, groups, repeat, e) : Value();
  }
};

} // namespace

namespace ctxc {
void registerContextLoweringModels(MLIRContext *context) {
  xf::RotaryOp::attachInterface<LowerRotary>(*context);
  xf::AttentionOp::attachInterface<LowerAttention>(*context);
}
} // namespace ctxc
