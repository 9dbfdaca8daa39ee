// Expressions over float64 that write ops: `x * x + 1` creates a multiplication and an addition.
//
// A number is either the same in all threads of a block, or computed by each thread for its own
// components (VectorWriter.h). Constants stay C++ numbers until they are used. Comparisons with NaN
// are false.
#ifndef CTXC_LIB_LOWERING_GPU_FORMULA_H
#define CTXC_LIB_LOWERING_GPU_FORMULA_H

#include "lib/Lowering/GPU/KernelWriter.h"

namespace ctxc::gpu_lowering {

class Number {
public:
  Number(double constant) : constant(constant) {}
  Number(KernelWriter &w, mlir::Value float64) : w(&w), made(float64) {}

  KernelWriter *writer() const { return w; }
  mlir::Value value(KernelWriter &w) const;

private:
  KernelWriter *w = nullptr; ///< null for a constant
  mlir::Value made;
  double constant = 0;
};

/// A truth value (i1) in the kernel.
struct Condition {
  KernelWriter *w;
  mlir::Value value;
};

Number operator+(const Number &a, const Number &b);
Number operator-(const Number &a, const Number &b);
Number operator*(const Number &a, const Number &b);
Number operator/(const Number &a, const Number &b);
Number operator-(const Number &a);
Number sqrt(const Number &a);
Number abs(const Number &a);
inline Number square(const Number &a) { return a * a; }

Condition operator<(const Number &a, const Number &b);
Condition operator<=(const Number &a, const Number &b);
inline Condition operator>(const Number &a, const Number &b) { return b < a; }
inline Condition operator>=(const Number &a, const Number &b) { return b <= a; }
Condition operator==(const Number &a, const Number &b);
Condition operator&(const Condition &a, const Condition &b);
Condition operator|(const Condition &a, const Condition &b);
Condition operator^(const Condition &a, const Condition &b);
Condition operator!(const Condition &a);

/// `yes` where the condition holds, otherwise `no`; both are computed.
Number select(const Condition &condition, const Number &yes, const Number &no);
Condition select(const Condition &condition, const Condition &yes, const Condition &no);
inline Number min(const Number &a, const Number &b) { return select(b < a, b, a); }
inline Number max(const Number &a, const Number &b) { return select(a < b, b, a); }
inline Number asNumber(const Condition &condition) { return select(condition, 1.0, 0.0); }

/// a / b in float32, for where seven digits suffice: this division is cheaper than float64's.
Number divideRoughly(const Number &a, const Number &b);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_FORMULA_H
