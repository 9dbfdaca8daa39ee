#include "lib/Lowering/GPU/Formula.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

Value Number::value(KernelWriter &w) const {
  if (made)
    return made;
  return arith::ConstantOp::create(w.b, w.loc, w.b.getF64FloatAttr(constant));
}

/// The writer that either number has; two constants have none.
static KernelWriter &writerOf(const Number &a, const Number &b) {
  assert((a.writer() || b.writer()) && "a formula of constants alone");
  return a.writer() ? *a.writer() : *b.writer();
}

template <typename Op> static Number make(const Number &a, const Number &b) {
  KernelWriter &w = writerOf(a, b);
  return {w, Op::create(w.b, w.loc, a.value(w), b.value(w))};
}
template <typename Op> static Number make(const Number &a) {
  KernelWriter &w = *a.writer();
  return {w, Op::create(w.b, w.loc, a.value(w))};
}
static Condition compare(arith::CmpFPredicate predicate, const Number &a, const Number &b) {
  KernelWriter &w = writerOf(a, b);
  return {&w, arith::CmpFOp::create(w.b, w.loc, predicate, a.value(w), b.value(w))};
}
template <typename Op> static Condition make(const Condition &a, const Condition &b) {
  return {a.w, Op::create(a.w->b, a.w->loc, a.value, b.value)};
}

namespace ctxc::gpu_lowering {

Number operator+(const Number &a, const Number &b) { return make<arith::AddFOp>(a, b); }
Number operator-(const Number &a, const Number &b) { return make<arith::SubFOp>(a, b); }
Number operator*(const Number &a, const Number &b) { return make<arith::MulFOp>(a, b); }
Number operator/(const Number &a, const Number &b) { return make<arith::DivFOp>(a, b); }
Number operator-(const Number &a) { return make<arith::NegFOp>(a); }
Number sqrt(const Number &a) { return make<math::SqrtOp>(a); }
Number abs(const Number &a) { return make<math::AbsFOp>(a); }

Condition operator<(const Number &a, const Number &b) {
  return compare(arith::CmpFPredicate::OLT, a, b);
}
Condition operator<=(const Number &a, const Number &b) {
  return compare(arith::CmpFPredicate::OLE, a, b);
}
Condition operator==(const Number &a, const Number &b) {
  return compare(arith::CmpFPredicate::OEQ, a, b);
}
Condition operator&(const Condition &a, const Condition &b) { return make<arith::AndIOp>(a, b); }
Condition operator|(const Condition &a, const Condition &b) { return make<arith::OrIOp>(a, b); }
Condition operator^(const Condition &a, const Condition &b) { return make<arith::XOrIOp>(a, b); }
Condition operator!(const Condition &a) {
  return a ^ Condition{a.w, arith::ConstantIntOp::create(a.w->b, a.w->loc, 1, 1)};
}

Number select(const Condition &condition, const Number &yes, const Number &no) {
  KernelWriter &w = *condition.w;
  return {w, arith::SelectOp::create(w.b, w.loc, condition.value, yes.value(w), no.value(w))};
}
Condition select(const Condition &condition, const Condition &yes, const Condition &no) {
  return (condition & yes) | (!condition & no);
}

Number divideRoughly(const Number &a, const Number &b) {
  KernelWriter &w = writerOf(a, b);
  auto narrow = [&](const Number &x) -> Value {
    return arith::TruncFOp::create(w.b, w.loc, w.b.getF32Type(), x.value(w));
  };
  Value quotient = arith::DivFOp::create(w.b, w.loc, narrow(a), narrow(b));
  return {w, arith::ExtFOp::create(w.b, w.loc, w.b.getF64Type(), quotient)};
}

} // namespace ctxc::gpu_lowering
