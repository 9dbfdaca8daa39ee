// The compiled form of each xf op: its equation over S rows, in linalg.
#include "lib/Lowering/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

constexpr auto kFast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;

RankedTensorType ranked(Value v) { return cast<RankedTensorType>(v.getType()); }
Value constant(OpBuilder &b, Location loc, double x) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(x)));
}
Value add(OpBuilder &b, Location l, Value x, Value y) { return arith::AddFOp::create(b, l, x, y); }
Value sub(OpBuilder &b, Location l, Value x, Value y) { return arith::SubFOp::create(b, l, x, y); }
Value mul(OpBuilder &b, Location l, Value x, Value y) { return arith::MulFOp::create(b, l, x, y); }
Value div(OpBuilder &b, Location l, Value x, Value y) { return arith::DivFOp::create(b, l, x, y); }

template <typename Model, typename Op>
using Lowering = LinalgLoweringOpInterface::ExternalModel<Model, Op>;

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

struct LowerParam : Lowering<LowerParam, xf::ParamOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.param(cast<xf::ParamOp>(op).getName()));
    return success();
  }
};

struct LowerSetting : Lowering<LowerSetting, xf::SettingOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.setting(cast<xf::SettingOp>(op).getName()));
    return success();
  }
};

struct LowerToken : Lowering<LowerToken, xf::TokenOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.tokens());
    return success();
  }
};

struct LowerPosition : Lowering<LowerPosition, xf::PositionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.positions());
    return success();
  }
};

struct LowerEmbed : Lowering<LowerEmbed, xf::EmbedOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto embed = cast<xf::EmbedOp>(op);
    if (e.hasRows(embed.getTable()))
      return op->emitOpError("with a computed table has no compiled kernel; run it with --backend "
                             "reference");
    Value table = e.lookup(embed.getTable());
    MLIRContext *context = op->getContext();
    AffineExpr s, j;
    bindDims(context, s, j);
    e.bind(embed,
           e.generic(e.emptyRows(ranked(embed).getShape()), {e.lookup(embed.getId())},
                     {AffineMap::get(2, 0, {s}, context), AffineMap::get(2, 0, {s, j}, context)},
                     {IteratorType::parallel, IteratorType::parallel},
                     [&](OpBuilder &b, Location l, ValueRange args) -> Value {
                       Value row = arith::IndexCastOp::create(b, l, b.getIndexType(), args[0]);
                       Value column = linalg::IndexOp::create(b, l, 1);
                       Value x = tensor::ExtractOp::create(b, l, table, ValueRange{row, column});
                       return KernelEmitter::widen(b, l, x);
                     }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Parameterised ops
//===----------------------------------------------------------------------===//

struct LowerLinear : Lowering<LowerLinear, xf::LinearOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto linear = cast<xf::LinearOp>(op);
    if (e.hasRows(linear.getWeight()))
      return op->emitOpError("with a computed weight has no compiled kernel; run it with --backend "
                             "reference");
    e.bind(linear, e.linear(e.lookup(linear.getWeight()), e.data(linear.getData()),
                            linear.getTransposed()));
    return success();
  }
};

struct LowerBias : Lowering<LowerBias, xf::BiasOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto bias = cast<xf::BiasOp>(op);
    e.bind(bias, e.elementwise(
                     bias, {bias.getData(), bias.getBias()},
                     [](OpBuilder &b, Location l, ValueRange a) { return add(b, l, a[0], a[1]); }));
    return success();
  }
};

struct LowerScale : Lowering<LowerScale, xf::ScaleOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto scale = cast<xf::ScaleOp>(op);
    double offset = scale.getOffset().convertToFloat();
    e.bind(scale, e.elementwise(scale, {scale.getData(), scale.getScale()},
                                [&](OpBuilder &b, Location l, ValueRange a) {
                                  Value m =
                                      offset == 0 ? a[1] : add(b, l, constant(b, l, offset), a[1]);
                                  return mul(b, l, m, a[0]);
                                }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Functions of a token
//===----------------------------------------------------------------------===//

struct LowerNormalize : Lowering<LowerNormalize, xf::NormalizeOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto norm = cast<xf::NormalizeOp>(op);
    Value x = e.data(norm.getData());
    double d = ranked(norm).getShape().back(), eps = norm.getEps().convertToDouble();
    if (norm.getKind() == xf::NormKind::layer) {
      Value total = e.reduceLast(x, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return arith::AddFOp::create(b, l, a[0], a[1], kFast);
      });
      x = e.mapWithReduced(x, {total}, [&](OpBuilder &b, Location l, ValueRange a) {
        return sub(b, l, a[0], div(b, l, a[1], constant(b, l, d)));
      });
    }
    double count = norm.getKind() == xf::NormKind::l2 ? 1 : d;
    Value squares = e.dotLast(x, x);
    e.bind(norm, e.mapWithReduced(x, {squares}, [&](OpBuilder &b, Location l, ValueRange a) {
      Value mean = count == 1 ? Value(a[1]) : div(b, l, a[1], constant(b, l, count));
      Value root = math::SqrtOp::create(b, l, add(b, l, mean, constant(b, l, eps)));
      return mul(b, l, a[0], div(b, l, constant(b, l, 1), root));
    }));
    return success();
  }
};

Value sigmoid(OpBuilder &b, Location l, Value x) {
  Value e = math::ExpOp::create(b, l, arith::NegFOp::create(b, l, x));
  return div(b, l, constant(b, l, 1), add(b, l, constant(b, l, 1), e));
}

Value activate(OpBuilder &b, Location l, xf::ActivationKind kind, Value x) {
  auto number = [&](double c) { return constant(b, l, c); };
  switch (kind) {
  case xf::ActivationKind::gelu: {
    Value erf = math::ErfOp::create(b, l, mul(b, l, x, number(M_SQRT1_2)));
    return mul(b, l, mul(b, l, x, number(0.5)), add(b, l, number(1), erf));
  }
  case xf::ActivationKind::gelu_tanh: {
    Value cube = mul(b, l, mul(b, l, x, x), x);
    Value inner =
        mul(b, l, number(M_2_SQRTPI * M_SQRT1_2), add(b, l, x, mul(b, l, number(0.044715), cube)));
    Value tanh = math::TanhOp::create(b, l, inner);
    return mul(b, l, mul(b, l, x, number(0.5)), add(b, l, number(1), tanh));
  }
  case xf::ActivationKind::silu:
    return mul(b, l, x, sigmoid(b, l, x));
  case xf::ActivationKind::quick_gelu:
    return mul(b, l, x, sigmoid(b, l, mul(b, l, x, number(1.702))));
  case xf::ActivationKind::relu:
    return arith::MaximumFOp::create(b, l, x, number(0));
  case xf::ActivationKind::relu2: {
    Value r = arith::MaximumFOp::create(b, l, x, number(0));
    return mul(b, l, r, r);
  }
  case xf::ActivationKind::sigmoid:
    return sigmoid(b, l, x);
  case xf::ActivationKind::tanh:
    return math::TanhOp::create(b, l, x);
  case xf::ActivationKind::exp:
    return math::ExpOp::create(b, l, x);
  case xf::ActivationKind::softplus: {
    // max(x, 0) + log(1 + e^−|x|): no overflow on either side.
    Value e = math::ExpOp::create(b, l, arith::NegFOp::create(b, l, math::AbsFOp::create(b, l, x)));
    return add(b, l, arith::MaximumFOp::create(b, l, x, number(0)), math::Log1pOp::create(b, l, e));
  }
  }
  llvm_unreachable("unknown activation");
}

struct LowerActivation : Lowering<LowerActivation, xf::ActivationOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto activation = cast<xf::ActivationOp>(op);
    e.bind(activation, e.elementwise(activation, {activation.getData()},
                                     [&](OpBuilder &b, Location l, ValueRange a) {
                                       return activate(b, l, activation.getKind(), a[0]);
                                     }));
    return success();
  }
};

/// softmax along the last dimension of any tensor.
Value softmax(KernelEmitter &e, Value x) {
  Value largest = e.reduceLast(x, -INFINITY, [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::MaximumFOp::create(b, l, a[0], a[1]);
  });
  Value powers =
      e.mapWithReduced(x, {largest}, [](OpBuilder &b, Location l, ValueRange a) -> Value {
        return math::ExpOp::create(b, l, sub(b, l, a[0], a[1]));
      });
  Value total = e.reduceLast(powers, 0, [](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[0], a[1], kFast);
  });
  return e.mapWithReduced(powers, {total}, [](OpBuilder &b, Location l, ValueRange a) {
    return div(b, l, a[0], a[1]);
  });
}

struct LowerSoftmax : Lowering<LowerSoftmax, xf::SoftmaxOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), softmax(e, e.data(op->getOperand(0))));
    return success();
  }
};

struct LowerSoftcap : Lowering<LowerSoftcap, xf::SoftcapOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto softcap = cast<xf::SoftcapOp>(op);
    double cap = softcap.getCap().convertToFloat();
    e.bind(softcap,
           e.elementwise(softcap, {softcap.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             Value t = math::TanhOp::create(b, l, div(b, l, a[0], constant(b, l, cap)));
             return mul(b, l, constant(b, l, cap), t);
           }));
    return success();
  }
};

/// add, sub and mul: one arith op an element.
template <typename Op, typename ArithOp>
struct LowerBinary : Lowering<LowerBinary<Op, ArithOp>, Op> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.elementwise(op->getResult(0), op->getOperands(),
                                           [](OpBuilder &b, Location l, ValueRange a) -> Value {
                                             return ArithOp::create(b, l, a[0], a[1]);
                                           }));
    return success();
  }
};

struct LowerDiv : Lowering<LowerDiv, xf::DivOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0),
           e.elementwise(
               op->getResult(0), op->getOperands(), [](OpBuilder &b, Location l, ValueRange a) {
                 Value zero = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, a[1],
                                                    constant(b, l, 0));
                 Value divisor = arith::SelectOp::create(b, l, zero, constant(b, l, 1), a[1]);
                 return div(b, l, a[0], divisor);
               }));
    return success();
  }
};

struct LowerTimes : Lowering<LowerTimes, xf::TimesOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto times = cast<xf::TimesOp>(op);
    double factor = times.getFactor().convertToFloat();
    e.bind(times,
           e.elementwise(times, {times.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             return mul(b, l, a[0], constant(b, l, factor));
           }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// S × from → S × n → S × to.
struct LowerReshape : Lowering<LowerReshape, xf::ReshapeOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto reshape = cast<xf::ReshapeOp>(op);
    OpBuilder &b = e.builder;
    Value x = e.data(reshape.getData());
    auto groupsOf = [](int64_t rank) {
      SmallVector<ReassociationIndices> groups{{0}};
      groups.emplace_back();
      for (int64_t i = 1; i <= rank; ++i)
        groups.back().push_back(i);
      return groups;
    };
    int64_t fromRank = ranked(reshape.getData()).getRank(), toRank = ranked(reshape).getRank();
    if (fromRank > 1)
      x = tensor::CollapseShapeOp::create(b, e.loc, x, groupsOf(fromRank));
    if (toRank > 1) {
      SmallVector<int64_t> shape{ShapedType::kDynamic};
      SmallVector<OpFoldResult> sizes{e.rows()};
      for (int64_t d : ranked(reshape).getShape()) {
        shape.push_back(d);
        sizes.push_back(b.getIndexAttr(d));
      }
      x = tensor::ExpandShapeOp::create(b, e.loc, RankedTensorType::get(shape, b.getF32Type()), x,
                                        groupsOf(toRank), sizes);
    }
    e.bind(reshape, x);
    return success();
  }
};

/// S × shape, entries [from, from + size) of dimension `dim`, every `stride`-th.
Value slice(KernelEmitter &e, Value x, int64_t dim, int64_t from, int64_t size, int64_t stride) {
  OpBuilder &b = e.builder;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, x);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  sizes[dim] = b.getIndexAttr(size);
  strides[dim] = b.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(b, e.loc, x, offsets, sizes, strides);
}

Value insert(KernelEmitter &e, Value part, Value into, int64_t dim, int64_t from, int64_t stride) {
  OpBuilder &b = e.builder;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, e.loc, part);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  strides[dim] = b.getIndexAttr(stride);
  return tensor::InsertSliceOp::create(b, e.loc, part, into, offsets, sizes, strides);
}

struct LowerSlice : Lowering<LowerSlice, xf::SliceOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto s = cast<xf::SliceOp>(op);
    // Rows of a copy lie next to each other, which matrices and support functions need.
    Value part = slice(e, e.data(s.getData()), 1, s.getFrom(), ranked(s).getDimSize(0), 1);
    e.bind(s, bufferization::AllocTensorOp::create(e.builder, e.loc, ranked(part), ValueRange(),
                                                   /*copy=*/part));
    return success();
  }
};

struct LowerConcat : Lowering<LowerConcat, xf::ConcatOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto concat = cast<xf::ConcatOp>(op);
    Value result = e.emptyRows(ranked(concat).getShape());
    int64_t at = 0;
    for (Value part : concat.getParts()) {
      result = insert(e, e.data(part), result, 1, at, 1);
      at += ranked(part).getDimSize(0);
    }
    e.bind(concat, result);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Positions and context
//===----------------------------------------------------------------------===//

struct LowerRotary : Lowering<LowerRotary, xf::RotaryOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto rotary = cast<xf::RotaryOp>(op);
    MLIRContext *context = op->getContext();
    Value x = e.data(rotary.getData()), f = e.lookup(rotary.getFrequencies());
    int64_t n = ranked(rotary.getFrequencies()).getDimSize(0), heads = ranked(rotary).getDimSize(0);
    bool own = e.hasRows(rotary.getFrequencies()); // computed, each row's own
    bool half = rotary.getStyle() == xf::RotaryStyle::half;

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
            return function(b, l, mul(b, l, p, a[1]));
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

    // Scaled, and −∞ where the token at slot t is not visible from row s.
    AffineMap identity = AffineMap::getMultiDimIdentityMap(4, context);
    SmallVector<Value> ins{scores, e.positions(), e.slots(stream)};
    SmallVector<AffineMap> maps{identity, AffineMap::get(4, 0, {s}, context),
                                AffineMap::get(4, 0, {t}, context)};
    if (attention.getWindow()) {
      ins.push_back(e.lookup(attention.getWindow()));
      maps.push_back(AffineMap::get(4, 0, {b.getAffineConstantExpr(0)}, context));
    }
    maps.push_back(identity);
    double scale = attention.getScale().convertToFloat();
    empty = tensor::EmptyOp::create(b, e.loc, scoreSizes, b.getF32Type());
    scores = e.generic(
        empty, ins, maps, {par, par, par, par},
        [&](OpBuilder &n, Location l, ValueRange a) -> Value {
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
          return arith::SelectOp::create(n, l, seen, mul(n, l, a[0], constant(n, l, scale)),
                                         constant(n, l, -INFINITY));
        });
    Value weights = softmax(e, scores);

    // e is the innermost loop, so that the values are read along their rows.
    AffineExpr x = b.getAffineDimExpr(4);
    Value mixed =
        e.generic(e.filled(tensor::EmptyOp::create(b, e.loc, groupedSizes(out), b.getF32Type()), 0),
                  {weights, values}, {map5({s, g, r, t}), map5({t, g, x}), map5({s, g, r, x})},
                  {par, par, par, red, par}, accumulate);
    e.bind(attention, tensor::CollapseShapeOp::create(b, e.loc, mixed, split));
    return success();
  }
};

} // namespace

namespace ctxc {
void registerXFLoweringModels(MLIRContext *context) {
  xf::ParamOp::attachInterface<LowerParam>(*context);
  xf::SettingOp::attachInterface<LowerSetting>(*context);
  xf::TokenOp::attachInterface<LowerToken>(*context);
  xf::PositionOp::attachInterface<LowerPosition>(*context);
  xf::EmbedOp::attachInterface<LowerEmbed>(*context);
  xf::LinearOp::attachInterface<LowerLinear>(*context);
  xf::BiasOp::attachInterface<LowerBias>(*context);
  xf::ScaleOp::attachInterface<LowerScale>(*context);
  xf::NormalizeOp::attachInterface<LowerNormalize>(*context);
  xf::ActivationOp::attachInterface<LowerActivation>(*context);
  xf::SoftmaxOp::attachInterface<LowerSoftmax>(*context);
  xf::SoftcapOp::attachInterface<LowerSoftcap>(*context);
  xf::AddOp::attachInterface<LowerBinary<xf::AddOp, arith::AddFOp>>(*context);
  xf::SubOp::attachInterface<LowerBinary<xf::SubOp, arith::SubFOp>>(*context);
  xf::MulOp::attachInterface<LowerBinary<xf::MulOp, arith::MulFOp>>(*context);
  xf::DivOp::attachInterface<LowerDiv>(*context);
  xf::TimesOp::attachInterface<LowerTimes>(*context);
  xf::ReshapeOp::attachInterface<LowerReshape>(*context);
  xf::SliceOp::attachInterface<LowerSlice>(*context);
  xf::ConcatOp::attachInterface<LowerConcat>(*context);
  xf::RotaryOp::attachInterface<LowerRotary>(*context);
  xf::AttentionOp::attachInterface<LowerAttention>(*context);
}
} // namespace ctxc
