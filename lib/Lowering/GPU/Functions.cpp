// cos and sin as arithmetic, so that kernels need no device library.
#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_GPUEXPANDROTATIONS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

/// cos and sin of x. With k = round(x · 2/π), x − k π/2 is computed by three fused multiply-adds.
/// The first is exact for k < 2^24 / π, so that the result is accurate even where k is large, as it
/// is for positions times frequencies. On [−π/4, π/4] the series up to x^9 has an error below 1e-8.
struct Turn {
  OpBuilder &b;
  Location l;

  Value number(double x) { return arith::ConstantOp::create(b, l, b.getF32FloatAttr(float(x))); }
  Value whole(int64_t x) { return arith::ConstantIntOp::create(b, l, x, 32); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, l, x, y, z); }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, l, x, y); }

  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.back());
    for (double c : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, number(c));
    return sum;
  }

  /// sin(x + quarters · π/2)
  Value sine(Value x, int64_t quarters) {
    Value turns = times(x, number(0x1.45f306p-1));
    Value nearest = math::FloorOp::create(b, l, arith::AddFOp::create(b, l, turns, number(0.5)));
    Value k = arith::FPToSIOp::create(b, l, b.getI32Type(), nearest);
    Value less = arith::NegFOp::create(b, l, nearest);
    Value r = fma(less, number(0x1.921fb6p+0), x);
    r = fma(less, number(-0x1.777a5cp-25), r);
    r = fma(less, number(-0x1.ee59dap-50), r);
    Value r2 = times(r, r);
    Value sin =
        fma(times(r, r2), polynomial(r2, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880}), r);
    Value cos = fma(r2, polynomial(r2, {-0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320}), number(1));
    Value quarter = arith::AddIOp::create(b, l, k, whole(quarters));
    auto has = [&](int64_t bit) -> Value {
      Value masked = arith::AndIOp::create(b, l, quarter, whole(bit));
      return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, masked, whole(0));
    };
    Value value = arith::SelectOp::create(b, l, has(1), cos, sin);
    Value negative = arith::NegFOp::create(b, l, value);
    return arith::SelectOp::create(b, l, has(2), negative, value);
  }
};

struct GpuExpandRotations : ctxc::impl::GpuExpandRotationsBase<GpuExpandRotations> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<math::CosOp, math::SinOp>(op))
        return;
      OpBuilder b(op);
      Turn turn{b, op->getLoc()};
      op->getResult(0).replaceAllUsesWith(turn.sine(op->getOperand(0), isa<math::CosOp>(op)));
      op->erase();
    });
  }
};

} // namespace
