// Lowers the ops that read positions and the context: rotary embeddings, and attention over a KV
// cache that is written in place.
#include "ctxc/Lowering/LinalgArith.h"
#include "lib/Lowering/CPU/AttentionLoops.h"
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
    bool own = e.hasRows(rotary.getFrequencies()); // computed for each row
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

/// Replaces the last S rows of a state by `fresh`, and returns all its rows.
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
  e.store(extended, memref); // in place: the tensor lies in this memref
  return extended;
}

/// Rounds a finite number to the nearest bfloat16, ties to even, by integer arithmetic on its bits:
/// a conversion op would need a run-time library.
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

/// The term that a slope adds to the product of a query with the key at `position`.
Value slopeBias(OpBuilder &b, Location l, Value slope, Value position, bool rounded) {
  Value place = arith::SIToFPOp::create(b, l, b.getF32Type(), position);
  if (!rounded)
    return mul(b, l, slope, place);
  Value product = mul(b, l, roundedToBf16(b, l, slope), roundedToBf16(b, l, place));
  return roundedToBf16(b, l, product);
}

/// Attention over a state. The tokens that a row sees lie in KV slots. The last S slots of the
/// state are the rows of this call, so that rows see each other. In the reduced run of a dual
/// block, each row is a sequence of its own, which consists of the kept tokens and the row: the
/// state is only read, and the row's own key and value take the place of the last slot.
class AttentionEmitter {
public:
  AttentionEmitter(xf::AttentionOp attention, KernelEmitter &e)
      : attention(attention), e(e), b(e.builder), run(attention.getStateStream()),
        isolated(runIndex(run) == 1), visible(e.visible(run)),
        heads(ranked(attention.getQuery()).getDimSize(0)),
        groups(ranked(attention.getKey()).getDimSize(0)), repeat(heads / groups),
        width(ranked(attention.getQuery()).getDimSize(1)), out(ranked(attention).getDimSize(1)) {}

  void emit() {
    SmallVector<Value> memrefs = e.states(attention);
    if (isolated && kernel::isMarked<kernel::Alone>(attention) && !attention.getSinks())
      return bind(ownValues());
    for (Value fresh : {attention.getKey(), attention.getValue()}) {
      Value memref = memrefs[own.size()];
      own.push_back(e.data(fresh));
      states.push_back(isolated ? keptState(memref) : extendState(e, memref, own.back(), visible));
    }
    Operation *before = &b.getInsertionBlock()->back(); // of the states
    Value weights = softmax(e, maskedScores(), sinks());
    if (isInOrder())
      for (Operation *op = before->getNextNode(); op; op = op->getNextNode())
        if (auto overSlots = dyn_cast<linalg::LinalgOp>(op);
            overSlots && overSlots.getNumLoops() == 4)
          markCausal(op);
    bind(mix(weights));
  }

private:
  void bind(Value mixed) {
    e.bind(attention, tensor::CollapseShapeOp::create(
                          b, e.loc, mixed, SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}}));
  }

  static constexpr IteratorType par = IteratorType::parallel, red = IteratorType::reduction;

  Value kept() { return arith::SubIOp::create(b, e.loc, visible, e.index(1)); }

  /// The rows of a state that belong to the kept tokens.
  Value keptState(Value memref) {
    auto type = cast<MemRefType>(memref.getType());
    Value all = bufferization::ToTensorOp::create(
        b, e.loc, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
        /*restrict=*/true);
    return slots(all, 0, e.index(0), kept());
  }

  /// `count` entries of the dimension `dim`, from `from` on.
  Value slots(Value x, int64_t dim, OpFoldResult from, OpFoldResult count) {
    auto [offsets, sizes, strides] = window(x, dim, from, count);
    return tensor::ExtractSliceOp::create(b, e.loc, x, offsets, sizes, strides);
  }
  Value putSlots(Value part, Value into, int64_t dim, OpFoldResult from, OpFoldResult count) {
    auto [offsets, sizes, strides] = window(into, dim, from, count);
    return tensor::InsertSliceOp::create(b, e.loc, part, into, offsets, sizes, strides);
  }
  using Sizes = SmallVector<OpFoldResult>;
  std::tuple<Sizes, Sizes, Sizes> window(Value x, int64_t dim, OpFoldResult from,
                                         OpFoldResult count) {
    Sizes sizes = tensor::getMixedSizes(b, e.loc, x), offsets(sizes.size(), b.getIndexAttr(0)),
          strides(sizes.size(), b.getIndexAttr(1));
    offsets[dim] = from;
    sizes[dim] = count;
    return {offsets, sizes, strides};
  }

  SmallVector<OpFoldResult> groupedSizes(OpFoldResult last) {
    return {e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat), last};
  }
  Value emptyGrouped(OpFoldResult last) {
    return tensor::EmptyOp::create(b, e.loc, groupedSizes(last), b.getF32Type());
  }
  AffineMap map5(ArrayRef<AffineExpr> exprs) { return AffineMap::get(5, 0, exprs, b.getContext()); }

  static Value accumulate(OpBuilder &nested, Location l, ValueRange a) {
    Value product = arith::MulFOp::create(nested, l, a[0], a[1], kFast);
    return arith::AddFOp::create(nested, l, a[2], product, kFast);
  }

  /// Whether the rows' own slots are the last ones, and no row sees a slot after its own.
  bool isInOrder() { return !isolated && !attention.getBidirectional(); }
  Value inOrder(Value product) {
    if (isInOrder())
      markCausal(product.getDefiningOp());
    return product;
  }
  void markCausal(Operation *op) {
    kernel::mark<kernel::Causal>(op);
    if (Value window = attention.getWindow())
      if (auto setting = window.getDefiningOp<xf::SettingOp>())
        kernel::Window(op->getContext()).setAttr(op, setting.getNameAttr());
  }

  Value markedAs(kernel::Product product, Value value) {
    kernel::KernelDialect::ProductAttrHelper(b.getContext())
        .setAttr(value.getDefiningOp(), kernel::ProductAttr::get(b.getContext(), product));
    return value;
  }

  /// The products of queries and keys: S × groups × repeat × visible.
  Value products() {
    auto grouped =
        RankedTensorType::get({ShapedType::kDynamic, groups, repeat, width}, b.getF32Type());
    Value query = tensor::ExpandShapeOp::create(b, e.loc, grouped, e.data(attention.getQuery()),
                                                SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}},
                                                groupedSizes(b.getIndexAttr(width)));
    AffineExpr s, g, r, t, d;
    bindDims(b.getContext(), s, g, r, t, d);
    auto times = [&](Value keys, AffineMap map, Value init) {
      return e.generic(init, {query, keys}, {map5({s, g, r, d}), map, map5({s, g, r, t})},
                       {par, par, par, par, red}, accumulate);
    };
    Value all = e.filled(emptyGrouped(visible), 0);
    auto ofState = [&](Value init) {
      return markedAs(kernel::Product::Scores, times(states[0], map5({t, g, d}), init));
    };
    if (!isolated)
      return inOrder(ofState(all));
    OpFoldResult one = b.getIndexAttr(1), first = b.getIndexAttr(0), last = kept();
    Value ofKept = ofState(slots(all, 3, first, last));
    all = putSlots(ofKept, all, 3, first, last);
    Value ofOwn = times(own[0], map5({s, g, d}), slots(all, 3, last, one));
    return putSlots(ofOwn, all, 3, last, one);
  }

  /// The scores: scaled, capped, and −∞ where row s does not see the token in slot t.
  Value maskedScores() {
    MLIRContext *context = b.getContext();
    AffineExpr s, g, r, t;
    bindDims(context, s, g, r, t);
    AffineMap identity = AffineMap::getMultiDimIdentityMap(4, context);
    SmallVector<Value> ins{products(), e.positions(), e.slots(run)};
    SmallVector<AffineMap> maps{identity, AffineMap::get(4, 0, {s}, context),
                                AffineMap::get(4, 0, {t}, context)};
    if (attention.getWindow()) {
      ins.push_back(e.lookup(attention.getWindow()));
      maps.push_back(AffineMap::get(4, 0, {b.getAffineConstantExpr(0)}, context));
    }
    if (Value slopes = attention.getSlopes()) {
      ins.push_back(e.hasRows(slopes) ? groupedRows(slopes) : oneRow(slopes));
      maps.push_back(e.hasRows(slopes) ? AffineMap::get(4, 0, {s, g, r}, context)
                                       : AffineMap::get(4, 0, {g, r}, context));
    }
    maps.push_back(identity);
    Value last = isolated ? kept() : Value();
    return e.generic(emptyGrouped(visible), ins, maps, {par, par, par, par},
                     [&](OpBuilder &n, Location l, ValueRange a) -> Value {
                       Value isOwn, place = a[2];
                       if (isolated) {
                         isOwn = arith::CmpIOp::create(n, l, arith::CmpIPredicate::eq,
                                                       linalg::IndexOp::create(n, l, 3), last);
                         place = arith::SelectOp::create(n, l, isOwn, a[1], place);
                       }
                       Value score = scored(n, l, a, place);
                       if (attention.getBidirectional())
                         return score;
                       return arith::SelectOp::create(n, l, isSeen(n, l, a, place, isOwn), score,
                                                      constant(n, l, -INFINITY));
                     });
  }

  /// `a` holds the product, the row's position, the slot's position, and, where there are any, the
  /// window and the slope.
  Value scored(OpBuilder &n, Location l, ValueRange a, Value place) {
    Value product = a[0];
    if (attention.getSlopes())
      product = add(n, l, product, slopeBias(n, l, a[a.size() - 2], place, attention.getRounded()));
    Value score = mul(n, l, product, constant(n, l, attention.getScale().convertToFloat()));
    return attention.getSoftcap() ? softcap(n, l, score, attention.getSoftcap()->convertToFloat())
                                  : score;
  }

  /// Whether the row sees the token at `place`: itself, and those before it within the window.
  Value isSeen(OpBuilder &n, Location l, ValueRange a, Value place, Value isOwn) {
    auto compare = [&](arith::CmpIPredicate p, Value x, Value y) -> Value {
      return arith::CmpIOp::create(n, l, p, x, y);
    };
    Value zero = arith::ConstantIntOp::create(n, l, 0, 32);
    Value distance = arith::SubIOp::create(n, l, a[1], place);
    Value seen = compare(arith::CmpIPredicate::sge, distance, zero);
    if (isolated) // only kept tokens that come before the row
      seen = arith::OrIOp::create(n, l, isOwn, compare(arith::CmpIPredicate::sgt, distance, zero));
    if (!attention.getWindow())
      return seen;
    Value window = arith::TruncIOp::create(n, l, n.getI32Type(), a[3]);
    Value unlimited = compare(arith::CmpIPredicate::eq, window, zero);
    Value near = compare(arith::CmpIPredicate::slt, distance, window);
    return arith::AndIOp::create(n, l, seen, arith::OrIOp::create(n, l, unlimited, near));
  }

  /// Σ_t w_t v_t, slot after slot.
  Value mix(Value weights) {
    // x is the innermost loop, so that values are read along their rows.
    AffineExpr s, g, r, t, x;
    bindDims(b.getContext(), s, g, r, t, x);
    auto sum = [&](Value of, Value values, AffineMap map, Value init) {
      return e.generic(init, {of, values}, {map5({s, g, r, t}), map, map5({s, g, r, x})},
                       {par, par, par, red, par}, accumulate);
    };
    Value mixed = e.filled(emptyGrouped(b.getIndexAttr(out)), 0);
    auto ofState = [&](Value of) {
      return markedAs(kernel::Product::Mixed, sum(of, states[1], map5({t, g, x}), mixed));
    };
    if (!isolated)
      return inOrder(ofState(weights));
    OpFoldResult one = b.getIndexAttr(1), first = b.getIndexAttr(0), last = kept();
    mixed = ofState(slots(weights, 3, first, last));
    return sum(slots(weights, 3, last, one), own[1], map5({s, g, x}), mixed);
  }

  /// The result of `mix` where a row's own slot is the only one: its weight is 1, whatever its
  /// score is.
  Value ownValues() {
    AffineExpr s, g, r, x;
    bindDims(b.getContext(), s, g, r, x);
    return e.generic(emptyGrouped(b.getIndexAttr(out)), {e.data(attention.getValue())},
                     {AffineMap::get(4, 0, {s, g, x}, b.getContext()),
                      AffineMap::getMultiDimIdentityMap(4, b.getContext())},
                     {par, par, par, par},
                     [](OpBuilder &, Location, ValueRange a) { return a[0]; });
  }

  /// Reshapes one number for each head to (groups, repeat), and repeats it for each token.
  Value oneRow(Value heads) {
    return tensor::ExpandShapeOp::create(
        b, e.loc, RankedTensorType::get({groups, repeat}, b.getF32Type()), e.lookup(heads),
        SmallVector<ReassociationIndices>{{0, 1}},
        SmallVector<OpFoldResult>{b.getIndexAttr(groups), b.getIndexAttr(repeat)});
  }
  Value groupedRows(Value heads) {
    return tensor::ExpandShapeOp::create(
        b, e.loc, RankedTensorType::get({ShapedType::kDynamic, groups, repeat}, b.getF32Type()),
        e.data(heads), SmallVector<ReassociationIndices>{{0}, {1, 2}},
        SmallVector<OpFoldResult>{e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat)});
  }
  /// The scores of the attention sinks, for each row; null where there are none.
  Value sinks() {
    Value sinks = attention.getSinks();
    return sinks ? groupedRows(sinks) : Value();
  }

  xf::AttentionOp attention;
  KernelEmitter &e;
  OpBuilder &b;
  StringRef run;
  bool isolated;
  Value visible;
  int64_t heads, groups, repeat, width, out;
  SmallVector<Value, 2> own, states; ///< keys and values: the rows', and those of the state
};

struct LowerAttention : Lowering<LowerAttention, xf::AttentionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    AttentionEmitter(cast<xf::AttentionOp>(op), e).emit();
    return success();
  }
};

} // namespace

namespace ctxc {
void registerContextLoweringModels(MLIRContext *context) {
  xf::RotaryOp::attachInterface<LowerRotary>(*context);
  xf::AttentionOp::attachInterface<LowerAttention>(*context);
}
} // namespace ctxc
