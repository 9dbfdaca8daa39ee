#include "NormInversionCore.h"

#include "UnitProblem.h"
#include "ctxc/Numerics/EachCpu.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ctxc;
using namespace ctxc::detail;

//===----------------------------------------------------------------------===//
// Into and out of the unit problem
//===----------------------------------------------------------------------===//

/// Compiled for each kind of processor within the two functions of either element type at the end.
#define CTXC_INLINE [[gnu::always_inline]] inline

/// The largest magnitude; NaN when an entry is not finite. Eight lanes, as a maximum of numbers
/// that may be NaN has an order.
template <typename T> CTXC_INLINE static double largestMagnitude(const T *values, int64_t size) {
  constexpr int lanes = 8;
  double largest[lanes] = {};
  int64_t infinite[lanes] = {};
  auto take = [&](int lane, T value) {
    double magnitude = std::fabs(static_cast<double>(value));
    infinite[lane] |= !(magnitude <= std::numeric_limits<double>::max());
    largest[lane] = largest[lane] < magnitude ? magnitude : largest[lane];
  };
  int64_t k = 0;
  for (; k + lanes <= size; k += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      take(lane, values[k + lane]);
  for (; k < size; ++k)
    take(0, values[k]);
  if (std::any_of(infinite, infinite + lanes, [](int64_t any) { return any; }))
    return std::numeric_limits<double>::quiet_NaN();
  return *std::max_element(largest, largest + lanes);
}

/// Writes |data| / ‖data‖ and returns ‖data‖; for data = 0 the uniform
/// direction and √d, that is RMS 1. Squares only ratios, so nothing overflows.
template <typename T>
CTXC_INLINE static double normOf(const T *data, double largest, int64_t d, double *direction,
                                 double *work) {
  double units = largest > 0 ? largest : 1;
  for (int64_t k = 0; k < d; ++k) {
    direction[k] = largest > 0 ? std::fabs(static_cast<double>(data[k])) / units : 1;
    work[k] = direction[k] * direction[k];
  }
  double norm = std::sqrt(sum(work, d));
  for (int64_t k = 0; k < d; ++k)
    direction[k] /= norm;
  return std::min(norm * units, std::numeric_limits<double>::max());
}

template <typename T>
CTXC_INLINE static void invert(Update update, int64_t d, double eps, const T *g, const T *m,
                               const T *data, T *target, double *scratch) {
  double largestG = largestMagnitude(g, d), largestM = largestMagnitude(m, d);
  double largestData = largestMagnitude(data, d);
  bool solvable = largestG > 0 && largestM >= 0 && largestData >= 0;
  if (update == Update::Naive || !solvable) {
    std::copy(data, data + d, target);
    return;
  }
  double *a = scratch, *M = a + d, *direction = M + d, *x = direction + d, *work = x + d;
  double norm = normOf(data, largestData, d, direction, work);

  // √B = √(d ρ) with √ρ = R / √(R² + ε); never zero.
  double rms = norm / std::sqrt(static_cast<double>(d));
  double ratio = rms / std::hypot(rms, std::sqrt(std::max(eps, 0.0)));
  double radius =
      std::sqrt(static_cast<double>(d)) * std::max(ratio, std::numeric_limits<double>::min());

  // Scale a and M by one common factor to a largest entry of 1; `balance` is
  // the ratio of the two largest, kept apart as it may leave double's range.
  double balance = largestM > 0 ? largestG / largestM / radius : 2;
  balance = std::max(balance, 1e-290);
  double unitG = balance >= 1 ? 1 : balance, unitM = balance >= 1 ? 1 / balance : 1;
  for (int64_t k = 0; k < d; ++k) {
    a[k] = std::fabs(static_cast<double>(g[k])) / largestG * unitG;
    M[k] = largestM > 0 ? std::fabs(static_cast<double>(m[k])) / largestM * unitM : 0;
  }

  solve(update, {d, a, M, direction, x, work});

  // target = n √(R² + ε) = x √B √(R² + ε) = x ‖data‖.
  constexpr double limit = std::numeric_limits<T>::max();
  for (int64_t k = 0; k < d; ++k) {
    bool negative = g[k] == 0 || m[k] == 0 ? data[k] < 0 : (g[k] < 0) != (m[k] < 0);
    double magnitude = std::min(x[k] * norm, limit);
    target[k] = static_cast<T>(negative ? -magnitude : magnitude);
  }
}

//===----------------------------------------------------------------------===//
// The scale
//===----------------------------------------------------------------------===//

/// Least-squares s of s·(m ⊙ n) ≈ g; 1 when m ⊙ n = 0.
template <typename T> static double fitScalar(int64_t d, const T *g, const T *m, const T *n) {
  double largestP = 0, largestG = largestMagnitude(g, d);
  for (int64_t k = 0; k < d; ++k)
    largestP = std::max(largestP, std::fabs(static_cast<double>(m[k]) * n[k]));
  if (!(largestP > 0) || !(largestG >= 0) || largestP > std::numeric_limits<double>::max())
    return 1;
  if (largestG == 0)
    return 0;
  double products = 0, squares = 0;
  for (int64_t k = 0; k < d; ++k) {
    double p = static_cast<double>(m[k]) * n[k] / largestP;
    products += p * (g[k] / largestG);
    squares += p * p;
  }
  constexpr double limit = std::numeric_limits<double>::max();
  return std::clamp(products / squares * (largestG / largestP), -limit, limit);
}

template <typename T>
static ScaleCounts solveScalar(int64_t d, const T *g, const T *m, const T *n, T *delta) {
  constexpr double limit = std::numeric_limits<T>::max();
  double s = fitScalar(d, g, m, n);
  ScaleCounts counts;
  for (int64_t k = 0; k < d; ++k) {
    double change = (s - 1) * m[k];
    delta[k] = static_cast<T>(std::clamp(change, -limit, limit));
    counts.harmful += g[k] != 0 && (m[k] == 0 || n[k] == 0);
    counts.harmless += g[k] == 0 && n[k] == 0;
  }
  return counts;
}

template <typename T> CTXC_INLINE static double sumOfSquares(const T *x, int64_t size) {
  return sumEach(size, [=](int64_t k) { return static_cast<double>(x[k]) * x[k]; });
}

template <typename T>
CTXC_INLINE static void divideEach(int64_t d, const T *__restrict g, const T *__restrict m,
                                   const T *__restrict n, T *__restrict delta,
                                   ScaleCounts &counts) {
  // A component driven to zero comes back as the rounding of the sum that made
  // it; dividing g_k = 0 by that would destroy m_k without need.
  constexpr double limit = std::numeric_limits<T>::max();
  double zero = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                std::sqrt(sumOfSquares(n, d) / std::max<int64_t>(d, 1));
  for (int64_t k = 0; k < d; ++k) {
    double change = g[k], scale = m[k], normalized = n[k];
    bool harmless = change == 0 && std::fabs(normalized) <= zero;
    // The remainder first: where it is small, so is its error in Δm.
    double remainder = std::fma(-scale, normalized, change);
    double quotient = normalized == 0 ? limit : remainder / normalized;
    bool exact = std::fabs(quotient) < limit;
    double otherwise = std::fabs(remainder) <= limit ? remainder : 0;
    double result = harmless ? 0 : exact ? quotient : otherwise;
    delta[k] = static_cast<T>(result);
    counts.harmless += harmless;
    counts.harmful += !harmless && !exact;
  }
}

//===----------------------------------------------------------------------===//
// Both element types
//===----------------------------------------------------------------------===//

#define CTXC_DEFINE(T, SUFFIX)                                                                     \
  CTXC_EACH_CPU static void invert##SUFFIX(Update update, int64_t d, double eps, const T *g,       \
                                           const T *m, const T *data, T *target,                   \
                                           double *scratch) {                                      \
    invert(update, d, eps, g, m, data, target, scratch);                                           \
  }                                                                                                \
  CTXC_EACH_CPU static void divide##SUFFIX(int64_t d, const T *g, const T *m, const T *n,          \
                                           T *delta, ScaleCounts &counts) {                        \
    divideEach(d, g, m, n, delta, counts);                                                         \
  }                                                                                                \
  template <>                                                                                      \
  void detail::invertRmsNorm(Update update, int64_t d, double eps, const T *g, const T *m,         \
                             const T *data, T *target, double *scratch) {                          \
    invert##SUFFIX(update, d, eps, g, m, data, target, scratch);                                   \
  }                                                                                                \
  template <>                                                                                      \
  ScaleCounts detail::solveScale(Update update, int64_t d, const T *g, const T *m, const T *n,     \
                                 T *delta) {                                                       \
    if (update == Update::Scaled)                                                                  \
      return solveScalar(d, g, m, n, delta);                                                       \
    ScaleCounts counts;                                                                            \
    divide##SUFFIX(d, g, m, n, delta, counts);                                                     \
    return counts;                                                                                 \
  }

CTXC_DEFINE(float, Float)
CTXC_DEFINE(double, Double)
