// Replaces operations that older processors have no instruction for. LLVM would call libm's fmaf,
// and the conversion functions of its run-time library, once for each lane.
#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_EXPANDMISSINGINSTRUCTIONS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

/// a b + c with two roundings.
template <typename Fma> static void splitFma(Fma op, Value a, Value b, Value c) {
  OpBuilder builder(op);
  Value product = arith::MulFOp::create(builder, op.getLoc(), a, b);
  op.replaceAllUsesWith(arith::AddFOp::create(builder, op.getLoc(), product, c).getResult());
  op.erase();
}

static Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

static Value number(OpBuilder &b, Location loc, Type type, TypedAttr one) {
  auto vector = dyn_cast<VectorType>(type);
  TypedAttr value = vector ? TypedAttr(SplatElementsAttr::get(vector, one)) : one;
  return arith::ConstantOp::create(b, loc, type, value);
}

/// float16 to float32: with exponent and mantissa moved to their places in a float32, the number is
/// too small by a factor of 2⁻¹¹², also where it is subnormal. An exponent of all ones (infinity,
/// NaN) must stay all ones.
static void widen(arith::ExtFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type f32 = op.getType(), i32 = withElement(f32, b.getI32Type()),
       i16 = withElement(f32, b.getI16Type());
  auto integer = [&](uint32_t x) { return number(b, loc, i32, b.getI32IntegerAttr(int32_t(x))); };
  Value bits =
      arith::ExtUIOp::create(b, loc, i32, arith::BitcastOp::create(b, loc, i16, op.getIn()));
  Value size = arith::AndIOp::create(b, loc, bits, integer(0x7fff));
  Value sign = arith::ShLIOp::create(b, loc, arith::AndIOp::create(b, loc, bits, integer(0x8000)),
                                     integer(16));
  Value placed = arith::ShLIOp::create(b, loc, size, integer(13));
  Value scaled = arith::MulFOp::create(b, loc, arith::BitcastOp::create(b, loc, f32, placed),
                                       number(b, loc, f32, b.getF32FloatAttr(0x1p112f)));
  Value finite = arith::BitcastOp::create(b, loc, i32, scaled);
  Value infinite = arith::OrIOp::create(b, loc, placed, integer(0x7f800000));
  Value isInfinite =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, size, integer(0x7c00));
  Value result = arith::OrIOp::create(
      b, loc, sign, arith::SelectOp::create(b, loc, isInfinite, infinite, finite));
  op.replaceAllUsesWith(arith::BitcastOp::create(b, loc, f32, result).getResult());
  op.erase();
}

/// bfloat16 to float32: the bits of a bfloat16 are the upper half of a float32's. LLVM lowers the
/// conversion in the same way, but its cost model overrates it and makes loops over such numbers a
/// quarter as wide.
static void shift(arith::ExtFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value half = arith::BitcastOp::create(b, loc, b.getI16Type(), op.getIn());
  Value bits = arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, b.getI32Type(), half),
                                     number(b, loc, b.getI32Type(), b.getI32IntegerAttr(16)));
  op.replaceAllUsesWith(arith::BitcastOp::create(b, loc, op.getType(), bits).getResult());
  op.erase();
}

namespace {

struct ExpandMissingInstructions
    : ctxc::impl::ExpandMissingInstructionsBase<ExpandMissingInstructions> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto sum = dyn_cast<vector::FMAOp>(op); sum && !fma)
        return splitFma(sum, sum.getLhs(), sum.getRhs(), sum.getAcc());
      if (auto sum = dyn_cast<math::FmaOp>(op); sum && !fma)
        return splitFma(sum, sum.getA(), sum.getB(), sum.getC());
      auto extend = dyn_cast<arith::ExtFOp>(op);
      if (!extend || !getElementTypeOrSelf(extend.getType()).isF32())
        return;
      if (!halfPrecision && getElementTypeOrSelf(extend.getIn()).isF16())
        widen(extend);
      else if (extend.getIn().getType().isBF16())
        shift(extend);
    });
  }
};

} // namespace
