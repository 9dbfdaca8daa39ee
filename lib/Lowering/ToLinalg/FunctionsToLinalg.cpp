// Functions that are applied entry by entry.
#include "Functions.h"
#include "ctxc/Lowering/LinalgArith.h"
#include "dialects/XF/Functions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

namespace {

/// A number that a kernel computes, of which formulas write the ops.
struct Written {
  OpBuilder &b;
  Location l;
  Value value;

  Written with(Value other) const { return {b, l, other}; }
  Written number(double c) const { return with(constant(b, l, c)); }
  template <typename Op> Written apply() const { return with(Op::create(b, l, value)); }
};
Written operator+(Written x, Written y) { return x.with(add(x.b, x.l, x.value, y.value)); }
Written operator*(Written x, Written y) { return x.with(mul(x.b, x.l, x.value, y.value)); }
Written operator+(double c, Written x) { return x.number(c) + x; }
Written operator*(double c, Written x) { return x.number(c) * x; }
Written operator*(Written x, double c) { return x * x.number(c); }
Written abs(Written x) { return x.apply<math::AbsFOp>(); }
Written exp(Written x) { return x.apply<math::ExpOp>(); }
Written sqrt(Written x) { return x.apply<math::SqrtOp>(); }
Written tanh(Written x) { return x.apply<math::TanhOp>(); }
Written relu(Written x) {
  return x.with(arith::MaximumFOp::create(x.b, x.l, x.value, x.number(0).value));
}
Written sigmoid(Written x) {
  Written below = 1.0 + exp(x.apply<arith::NegFOp>());
  return x.with(div(x.b, x.l, x.number(1).value, below.value));
}
Written softplus(Written x) {
  return relu(x) + exp(abs(x).apply<arith::NegFOp>()).apply<math::Log1pOp>();
}
Written logarithm(Written x) {
  Value least = x.number(xf::functions::leastPositive).value;
  return x.with(arith::MaximumFOp::create(x.b, x.l, x.value, least)).apply<math::LogOp>();
}
Written gelu(Written x) { return xf::functions::gated(x, (x * M_SQRT1_2).apply<math::ErfOp>()); }

struct LowerActivation : Lowering<LowerActivation, xf::ActivationOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto activation = cast<xf::ActivationOp>(op);
    e.bind(activation,
           e.elementwise(activation, {activation.getData()},
                         [&](OpBuilder &b, Location l, ValueRange a) {
                           return xf::formulaOf(activation.getKind(), Written{b, l, a[0]}).value;
                         }));
    return success();
  }
};

struct LowerSoftcap : Lowering<LowerSoftcap, xf::SoftcapOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto softcap = cast<xf::SoftcapOp>(op);
    double cap = softcap.getCap().convertToFloat();
    e.bind(softcap,
           e.elementwise(softcap, {softcap.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             return ctxc::softcap(b, l, a[0], cap);
           }));
    return success();
  }
};

struct LowerClamp : Lowering<LowerClamp, xf::ClampOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto clamp = cast<xf::ClampOp>(op);
    double limit = clamp.getLimit().convertToFloat();
    e.bind(clamp,
           e.elementwise(clamp, {clamp.getData()},
                         [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                           Value low = a[0];
                           if (!clamp.getAbove())
                             low = arith::MaximumFOp::create(b, l, low, constant(b, l, -limit));
                           return arith::MinimumFOp::create(b, l, low, constant(b, l, limit));
                         }));
    return success();
  }
};

struct LowerLeaky : Lowering<LowerLeaky, xf::LeakyOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto leaky = cast<xf::LeakyOp>(op);
    double slope = leaky.getSlope().convertToFloat();
    e.bind(leaky,
           e.elementwise(leaky, {leaky.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             Value isMore =
                 arith::CmpFOp::create(b, l, arith::CmpFPredicate::OGT, a[0], constant(b, l, 0));
             Value less = mul(b, l, a[0], constant(b, l, slope));
             return Value(arith::SelectOp::create(b, l, isMore, a[0], less));
           }));
    return success();
  }
};

/// |x|ⁿ or its root, for x ≥ 0. A cube root is made of a logarithm, and two steps of Newton's
/// method correct its rounding.
Value powerOf(OpBuilder &b, Location l, xf::PowerOp power, Value size) {
  bool isCube = power.getExponent() == 3;
  if (!power.getRoot())
    return isCube ? mul(b, l, mul(b, l, size, size), size) : mul(b, l, size, size);
  if (!isCube)
    return math::SqrtOp::create(b, l, size);
  Value isZero = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, size, constant(b, l, 0));
  Value x = arith::SelectOp::create(b, l, isZero, constant(b, l, 1), size);
  Value y =
      math::ExpOp::create(b, l, mul(b, l, math::LogOp::create(b, l, x), constant(b, l, 1.0 / 3)));
  for (int step = 0; step < 2; ++step) {
    Value rest = sub(b, l, div(b, l, x, mul(b, l, y, y)), y);
    y = add(b, l, y, mul(b, l, rest, constant(b, l, 1.0 / 3)));
  }
  return arith::SelectOp::create(b, l, isZero, constant(b, l, 0), y);
}

struct LowerPower : Lowering<LowerPower, xf::PowerOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto power = cast<xf::PowerOp>(op);
    e.bind(power,
           e.elementwise(power, {power.getData()}, [&](OpBuilder &b, Location l, ValueRange a) {
             Value size = powerOf(b, l, power, math::AbsFOp::create(b, l, a[0]));
             Value isLess =
                 arith::CmpFOp::create(b, l, arith::CmpFPredicate::OLT, a[0], constant(b, l, 0));
             Value opposite = arith::NegFOp::create(b, l, size);
             return Value(arith::SelectOp::create(b, l, isLess, opposite, size));
           }));
    return success();
  }
};

/// x rounded to the nearest number of bfloat16, by its bits: adding half a step, and less where the
/// lower neighbour is even, carries into the digits that stay.
Value nearestBF16(OpBuilder &b, Location l, Value x) {
  Type bits = b.getI32Type();
  auto number = [&](int64_t c) {
    return arith::ConstantOp::create(b, l, IntegerAttr::get(bits, int32_t(c)));
  };
  Value from = arith::BitcastOp::create(b, l, bits, x);
  Value odd =
      arith::AndIOp::create(b, l, arith::ShRUIOp::create(b, l, from, number(16)), number(1));
  Value half = arith::AddIOp::create(b, l, odd, number(0x7fff));
  Value sum = arith::AddIOp::create(b, l, from, half);
  Value kept = arith::AndIOp::create(b, l, sum, number(0xffff0000));
  Value rounded = arith::BitcastOp::create(b, l, x.getType(), kept);
  Value isNone = arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNO, x, x);
  return arith::SelectOp::create(b, l, isNone, x, rounded);
}

struct LowerRound : Lowering<LowerRound, xf::RoundOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto round = cast<xf::RoundOp>(op);
    e.bind(round, e.elementwise(round, {round.getData()},
                                [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                                  if (round.getNarrow() == xf::NarrowType::bf16)
                                    return nearestBF16(b, l, a[0]);
                                  Value narrow =
                                      arith::TruncFOp::create(b, l, b.getF16Type(), a[0]);
                                  return arith::ExtFOp::create(b, l, b.getF32Type(), narrow);
                                }));
    return success();
  }
};

} // namespace

void ctxc::registerFunctionLowerings(MLIRContext &context) {
  xf::ActivationOp::attachInterface<LowerActivation>(context);
  xf::SoftcapOp::attachInterface<LowerSoftcap>(context);
  xf::ClampOp::attachInterface<LowerClamp>(context);
  xf::LeakyOp::attachInterface<LowerLeaky>(context);
  xf::PowerOp::attachInterface<LowerPower>(context);
  xf::RoundOp::attachInterface<LowerRound>(context);
}
