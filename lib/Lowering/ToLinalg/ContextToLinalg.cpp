// Lowers the ops that read positions and the context: rotary embeddings, and attention and
// convolutions over the slots of a state that is written in place.
#include "ctxc/Lowering/LinalgArith.h"
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

Value int32(OpBuilder &b, Location l, int64_t value) {
  return arith::ConstantIntOp::create(b, l, value, 32);
}

/// Rounds a finite number to the nearest bfloat16, ties to even, by integer arithmetic on its bits:
/// a conversion op would need a run-time library.
Value roundedToBf16(OpBuilder &b, Location l, Value x) {
  Type i32 = b.getI32Type();
  auto bits = [&](int64_t value) { return int32(b, l, value); };
  Value word = arith::BitcastOp::create(b, l, i32, x);
  Value odd = arith::AndIOp::create(b, l, arith::ShRUIOp::create(b, l, word, bits(16)), bits(1));
  Value half = arith::AddIOp::create(b, l, odd, bits(0x7fff));
  Value rounded = arith::AndIOp::create(b, l, arith::AddIOp::create(b, l, word, half),
                                        bits(int32_t(0xffff0000)));
  return arith::BitcastOp::create(b, l, b.getF32Type(), rounded);
}

/// A number that roundedToBf16 gave, in that type.
Value storedAsBf16(OpBuilder &b, Location l, Value x) {
  Value word = arith::BitcastOp::create(b, l, b.getI32Type(), x);
  Value upper = arith::TruncIOp::create(b, l, b.getI16Type(),
                                        arith::ShRUIOp::create(b, l, word, int32(b, l, 16)));
  return arith::BitcastOp::create(b, l, b.getBF16Type(), upper);
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
/// state is only read, and the row's own key and value lie beside the slots.
class AttentionEmitter {
public:
  AttentionEmitter(xf::AttentionOp attention, KernelEmitter &e)
      : attention(attention), e(e), b(e.builder), run(attention.getStateRun()),
        isolated(runIndex(run) == 1), visible(e.visible(run)),
        heads(ranked(attention.getQuery()).getDimSize(0)),
        groups(ranked(attention.getKey()).getDimSize(0)), repeat(heads / groups),
        width(ranked(attention.getQuery()).getDimSize(1)), out(ranked(attention).getDimSize(1)) {
    bindDims(b.getContext(), s, g, r, t);
  }

  void emit() {
    SmallVector<Value> memrefs = e.states(attention), states;
    SmallVector<Value> own{e.data(attention.getKey()), e.data(attention.getValue())};
    if (kernel::isMarked<kernel::RoundedState>(attention))
      for (Value &x : own)
        x = rounded(x);
    if (isolated && kernel::isMarked<kernel::Alone>(attention) && !attention.getSinks())
      return bind(ownValues(own[1]));
    for (auto [memref, fresh] : llvm::zip(memrefs, own))
      states.push_back(isolated ? firstSlots(e.readState(memref))
                                : e.extendState(memref, fresh, visible));
    Value query = grouped(e.data(attention.getQuery()), width);
    Value slots = e.slots(run), window, sinks, ownScore;
    if (isolated) {
      slots = firstSlots(slots);
      ownScore = ownScores(query, own[0]);
    }
    addOther(e.positions(), {s});
    addOther(slots, {t});
    addSlopes();
    if (attention.getWindow()) {
      Value limit = e.lookup(attention.getWindow());
      addOther(limit, {b.getAffineConstantExpr(0)});
      if (isInOrder())
        window = limit;
    }
    if (Value given = attention.getSinks())
      sinks = groupedRows(given);
    Value init = emptyGrouped(b.getIndexAttr(out));
    auto op = kernel::AttentionOp::create(
        b, e.loc, init.getType(), query, states[0], states[1], window, others, sinks, ownScore,
        isolated ? own[1] : Value(), init, b.getAffineMapArrayAttr(maps), isInOrder());
    writeScore(op);
    bind(op.getResult());
  }

private:
  void bind(Value mixed) {
    e.bind(attention, tensor::CollapseShapeOp::create(
                          b, e.loc, mixed, SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}}));
  }

  /// The rows' keys or values as their state has them: in the reduced run, which has no state of
  /// its rows, as float32 numbers.
  Value rounded(Value x) {
    ArrayRef<int64_t> shape = ranked(x).getShape().drop_front();
    AffineMap all = AffineMap::getMultiDimIdentityMap(3, b.getContext());
    Value into = e.emptyRows(shape, 1, isolated ? Type() : Type(b.getBF16Type()));
    return e.generic(into, {x}, {all, all}, SmallVector<IteratorType>(3, IteratorType::parallel),
                     [&](OpBuilder &n, Location l, ValueRange a) {
                       Value number = roundedToBf16(n, l, a[0]);
                       return isolated ? number : storedAsBf16(n, l, number);
                     });
  }

  /// Whether the rows' own slots are the last ones, and no row sees a slot after its own.
  bool isInOrder() { return !isolated && !attention.getBidirectional(); }

  /// The entries of the kept tokens: all but the last, along the first dimension.
  Value firstSlots(Value all) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, all),
                              offsets(sizes.size(), b.getIndexAttr(0)),
                              strides(sizes.size(), b.getIndexAttr(1));
    sizes[0] = arith::SubIOp::create(b, e.loc, visible, e.index(1)).getResult();
    return tensor::ExtractSliceOp::create(b, e.loc, all, offsets, sizes, strides);
  }

  SmallVector<OpFoldResult> groupedSizes(OpFoldResult last) {
    return {e.rows(), b.getIndexAttr(groups), b.getIndexAttr(repeat), last};
  }
  Value emptyGrouped(OpFoldResult last) {
    return tensor::EmptyOp::create(b, e.loc, groupedSizes(last), b.getF32Type());
  }
  Value grouped(Value x, int64_t last) {
    return tensor::ExpandShapeOp::create(
        b, e.loc,
        RankedTensorType::get({ShapedType::kDynamic, groups, repeat, last}, b.getF32Type()), x,
        SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}}, groupedSizes(b.getIndexAttr(last)));
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  AffineMap map4(ArrayRef<AffineExpr> exprs) { return AffineMap::get(4, 0, exprs, b.getContext()); }
  void addOther(Value other, ArrayRef<AffineExpr> at) {
    others.push_back(other);
    maps.push_back(map4(at));
  }
  void addSlopes() {
    Value slopes = attention.getSlopes();
    if (slopes && e.hasRows(slopes))
      addOther(groupedRows(slopes), {s, g, r});
    else if (slopes)
      addOther(oneRow(slopes), {g, r});
  }

  /// The region: the scores, scaled, capped, and −∞ where row s does not see the token in slot t.
  void writeScore(kernel::AttentionOp op) {
    Block &body = op.getScore().emplaceBlock();
    body.addArgument(b.getF32Type(), e.loc);
    for (Value other : others)
      body.addArgument(ranked(other).getElementType(), e.loc);
    OpBuilder n = OpBuilder::atBlockBegin(&body);
    ValueRange a = body.getArguments();
    Value slope = attention.getSlopes() ? KernelEmitter::widen(n, e.loc, a[3]) : Value();
    Value score = scored(n, e.loc, a[0], a[2], slope);
    if (!attention.getBidirectional())
      score = arith::SelectOp::create(n, e.loc, isSeen(n, e.loc, a), score,
                                      constant(n, e.loc, -INFINITY));
    kernel::AttendOp::create(n, e.loc, score);
  }

  /// The score of a token at `place`.
  Value scored(OpBuilder &n, Location l, Value product, Value place, Value slope) {
    if (slope)
      product = add(n, l, product, slopeBias(n, l, slope, place, attention.getRounded()));
    Value score = mul(n, l, product, constant(n, l, attention.getScale().convertToFloat()));
    return attention.getSoftcap() ? softcap(n, l, score, attention.getSoftcap()->convertToFloat())
                                  : score;
  }

  /// Whether the row sees the token: itself, and those before it within the window.
  Value isSeen(OpBuilder &n, Location l, ValueRange a) {
    auto compare = [&](arith::CmpIPredicate p, Value x, Value y) -> Value {
      return arith::CmpIOp::create(n, l, p, x, y);
    };
    Value zero = arith::ConstantIntOp::create(n, l, 0, 32);
    Value distance = arith::SubIOp::create(n, l, a[1], a[2]);
    // In the reduced run, only kept tokens that come before the row.
    Value seen =
        compare(isolated ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::sge, distance, zero);
    if (!attention.getWindow())
      return seen;
    Value window = arith::TruncIOp::create(n, l, n.getI32Type(), a.back());
    Value unlimited = compare(arith::CmpIPredicate::eq, window, zero);
    Value near = compare(arith::CmpIPredicate::slt, distance, window);
    return arith::AndIOp::create(n, l, seen, arith::OrIOp::create(n, l, unlimited, near));
  }

  /// The scores of the rows with themselves: S × groups × repeat.
  Value ownScores(Value query, Value key) {
    AffineExpr d = t;
    Value products = e.generic(e.filled(e.emptyRows({groups, repeat}), 0), {query, key},
                               {map4({s, g, r, d}), map4({s, g, d}), map4({s, g, r})},
                               {utils::IteratorType::parallel, utils::IteratorType::parallel,
                                utils::IteratorType::parallel, utils::IteratorType::reduction},
                               [](OpBuilder &n, Location l, ValueRange a) -> Value {
                                 Value product = arith::MulFOp::create(n, l, a[0], a[1], kFast);
                                 return arith::AddFOp::create(n, l, a[2], product, kFast);
                               });
    AffineMap heads = AffineMap::getMultiDimIdentityMap(3, b.getContext());
    SmallVector<Value> ins{products, e.positions()};
    SmallVector<AffineMap> at{heads, heads.getMajorSubMap(1)};
    if (Value slopes = attention.getSlopes()) {
      ins.push_back(e.hasRows(slopes) ? groupedRows(slopes) : oneRow(slopes));
      at.push_back(e.hasRows(slopes) ? heads : heads.getMinorSubMap(2));
    }
    at.push_back(heads);
    return e.generic(e.emptyRows({groups, repeat}), ins, at,
                     SmallVector<IteratorType>(3, IteratorType::parallel),
                     [&](OpBuilder &n, Location l, ValueRange a) {
                       return scored(n, l, a[0], a[1], attention.getSlopes() ? a[2] : Value());
                     });
  }

  /// The mixed values where a row's own slot is the only one: its weight is 1, whatever its score
  /// is.
  Value ownValues(Value values) {
    AffineExpr x = t;
    return e.generic(emptyGrouped(b.getIndexAttr(out)), {values},
                     {map4({s, g, x}), AffineMap::getMultiDimIdentityMap(4, b.getContext())},
                     SmallVector<IteratorType>(4, IteratorType::parallel),
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

  xf::AttentionOp attention;
  KernelEmitter &e;
  OpBuilder &b;
  std::optional<xf::Run> run;
  bool isolated;
  Value visible;
  int64_t heads, groups, repeat, width, out;
  AffineExpr s, g, r, t;
  SmallVector<Value> others; ///< what the score depends on: positions, slots, slopes, window
  SmallVector<AffineMap> maps;
};

struct LowerAttention : Lowering<LowerAttention, xf::AttentionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    AttentionEmitter(cast<xf::AttentionOp>(op), e).emit();
    return success();
  }
};

/// Σ_i W[c, k − 1 − i] x_c(p − i): the last k slots are read, the row's own first.
struct LowerConv : Lowering<LowerConv, xf::ConvOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto conv = cast<xf::ConvOp>(op);
    OpBuilder &b = e.builder;
    MLIRContext *context = op->getContext();
    const int64_t taps = ranked(conv.getWeight()).getDimSize(1);
    Value own = e.data(conv.getData()), weight = e.lookup(conv.getWeight());
    if (KernelEmitter::quantized(weight))
      return op->emitOpError("has no compiled kernel for a quantised weight; the reference engine "
                             "runs it");
    const bool isolated = runIndex(conv.getRun()) == 1, hasRows = e.hasRows(conv.getWeight());
    Value visible = e.visible(conv.getRun()), memref = e.states(op).front();
    // In the reduced run the slots have the kept tokens alone, behind which each row comes.
    Value slots = isolated ? e.readState(memref) : e.extendState(memref, own, visible);
    Value behind = isolated ? visible : arith::SubIOp::create(b, e.loc, visible, e.rows());

    AffineExpr s, c;
    bindDims(context, s, c);
    SmallVector<Value> ins{own};
    SmallVector<AffineMap> maps{AffineMap::get(2, 0, {s, c}, context)};
    for (int64_t i = 0; i < taps; ++i) {
      AffineExpr tap = getAffineConstantExpr(taps - 1 - i, context);
      ins.push_back(weight);
      maps.push_back(AffineMap::get(
          2, 0, hasRows ? ArrayRef<AffineExpr>{s, c, tap} : ArrayRef<AffineExpr>{c, tap}, context));
    }
    maps.push_back(maps.front());
    Value made = e.generic(
        e.emptyRows({ranked(conv).getDimSize(0)}), ins, maps,
        SmallVector<IteratorType>(2, IteratorType::parallel),
        [&](OpBuilder &n, Location l, ValueRange a) {
          Value zero = ctxc::constant(n, l, 0.0);
          Value row = isolated
                          ? behind
                          : arith::AddIOp::create(n, l, linalg::IndexOp::create(n, l, 0), behind)
                                .getResult();
          Value channel = linalg::IndexOp::create(n, l, 1);
          Value sum = mul(n, l, a[1], a[0]);
          for (int64_t i = 1; i < taps; ++i) {
            // The row's own slot is `row`, and one less in a reduced run, which has none for it.
            Value place = arith::SubIOp::create(
                n, l, row, arith::ConstantIndexOp::create(n, l, isolated ? i + 1 : i));
            Value first = arith::ConstantIndexOp::create(n, l, 0);
            Value isThere = arith::CmpIOp::create(n, l, arith::CmpIPredicate::sge, place, first);
            Value at = arith::MaxSIOp::create(n, l, place, first);
            Value x = tensor::ExtractOp::create(n, l, slots, ValueRange{at, channel});
            x = arith::SelectOp::create(n, l, isThere, x, zero);
            sum = add(n, l, sum, mul(n, l, a[1 + i], x));
          }
          return sum;
        });
    e.bind(conv, made);
    return success();
  }
};

} // namespace

namespace ctxc {
void registerContextLoweringModels(MLIRContext *context) {
  xf::RotaryOp::attachInterface<LowerRotary>(*context);
  xf::AttentionOp::attachInterface<LowerAttention>(*context);
  xf::ConvOp::attachInterface<LowerConv>(*context);
}
} // namespace ctxc
