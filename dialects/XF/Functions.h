//===- Functions.h - the functions of xf.activation, for any type of numbers -===//
#ifndef CTXC_DIALECTS_XF_FUNCTIONS_H
#define CTXC_DIALECTS_XF_FUNCTIONS_H

#include "dialects/XF/XF.h"
#include <cmath>

namespace ctxc::xf {

/// What formulas consist of, beside +, * and numbers. A type of numbers has them in its namespace.
namespace functions {
using std::abs;
using std::exp;
using std::sqrt;
using std::tanh;
inline double relu(double x) { return std::max(x, 0.0); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// log(1 + eˣ), which overflows for neither sign of x.
inline double softplus(double x) { return relu(x) + std::log1p(std::exp(-std::abs(x))); }
/// x Φ(x), where Φ is the normal distribution's.
inline double gelu(double x) { return x * std::erfc(-x * M_SQRT1_2) / 2; }

/// The least normal number of float32.
inline constexpr double leastPositive = 0x1p-126;
/// log x, of the least positive number where x is less.
inline double logarithm(double x) { return std::log(std::max(x, leastPositive)); }

/// A number and its derivative; where there is none, the one that PyTorch takes.
struct Dual {
  double at, slope = 0;
  Dual(double at, double slope = 0) : at(at), slope(slope) {}
};
inline Dual operator+(Dual x, Dual y) { return {x.at + y.at, x.slope + y.slope}; }
inline Dual operator*(Dual x, Dual y) { return {x.at * y.at, x.slope * y.at + x.at * y.slope}; }
inline Dual abs(Dual x) { return {std::abs(x.at), x.slope * ((x.at > 0) - (x.at < 0))}; }
inline Dual exp(Dual x) { return {std::exp(x.at), x.slope * std::exp(x.at)}; }
inline Dual sqrt(Dual x) {
  double root = std::sqrt(x.at);
  return {root, root > 0 ? x.slope * 0.5 / root : 0};
}
inline Dual tanh(Dual x) {
  double t = std::tanh(x.at);
  return {t, x.slope * (1 - t * t)};
}
inline Dual relu(Dual x) { return {relu(x.at), x.at > 0 ? x.slope : 0}; }
inline Dual sigmoid(Dual x) {
  double s = sigmoid(x.at);
  return {s, x.slope * s * (1 - s)};
}
inline Dual softplus(Dual x) { return {softplus(x.at), x.slope * sigmoid(x.at)}; }
inline Dual logarithm(Dual x) {
  return {logarithm(x.at), x.at > leastPositive ? x.slope / x.at : 0};
}
inline Dual gelu(Dual x) {
  double density = std::exp(-x.at * x.at / 2) / std::sqrt(2 * M_PI);
  return {gelu(x.at), x.slope * (std::erfc(-x.at * M_SQRT1_2) / 2 + x.at * density)};
}

/// x (1 + t) / 2.
template <typename Number> Number gated(Number x, Number t) { return x * 0.5 * (1.0 + t); }
} // namespace functions

/// The formula of an activation in x.
template <typename Number> Number formulaOf(ActivationKind kind, Number x) {
  using namespace functions;
  switch (kind) {
#define CTXC_FUNCTION(NAME, SHAPE, LEAST, FORMULA)                                                 \
  case ActivationKind::NAME:                                                                       \
    return FORMULA;
#include "dialects/XF/Functions.def"
  }
  llvm_unreachable("Functions.def has a row for each kind");
}

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FUNCTIONS_H
