#include "ctxc/Numerics/Softmax.h"
#include "ctxc/Numerics/EachCpu.h"
#include <cstring>

using namespace ctxc;

/// Taylor's, whose rest is below 1e-17 up to ln 2 / 2; from the highest power down.
static constexpr int terms = 14;
static constexpr double coefficients[terms] = {1.0 / 6227020800,
                                               1.0 / 479001600,
                                               1.0 / 39916800,
                                               1.0 / 3628800,
                                               1.0 / 362880,
                                               1.0 / 40320,
                                               1.0 / 5040,
                                               1.0 / 720,
                                               1.0 / 120,
                                               1.0 / 24,
                                               1.0 / 6,
                                               0.5,
                                               1.0,
                                               1.0};

/// exp of a number that is not above 0.
[[gnu::always_inline]] static inline double exponential(double x) {
  constexpr double perLn2 = 0x1.71547652b82fep0, ln2High = 0x1.62e42fefa0000p-1,
                   ln2Low = 0x1.cf79abc9e3b3ap-40;
  // A number of this size has the nearest integer in its lowest bits.
  constexpr double toInteger = 0x1.8p52;
  const double bounded = x < -707 ? -707 : x;
  const double shifted = bounded * perLn2 + toInteger;
  const double power = shifted - toInteger;
  const double r = (bounded - power * ln2High) - power * ln2Low; // at most ln 2 / 2
  double sum = coefficients[0];
  for (int i = 1; i < terms; ++i)
    sum = sum * r + coefficients[i];
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return x < -707 ? 0 : sum * scale;
}

CTXC_EACH_CPU static void exponentiateTo(double *out, const float *x, int64_t size, double shift) {
  for (int64_t k = 0; k < size; ++k)
    out[k] = exponential(double(x[k]) - shift);
}

CTXC_EACH_CPU static double sum(const double *x, int64_t size) {
  return detail::sumEach(size, [=](int64_t k) { return x[k]; });
}

double ctxc::exponentials(const float *x, int64_t size, double shift, double *exponentials) {
  exponentiateTo(exponentials, x, size, shift);
  return sum(exponentials, size);
}

/// exp of a number that is not above 0; Taylor's rest is below 1e-8.
[[gnu::always_inline]] static inline float exponential(float x) {
  constexpr float least = -86, perLn2 = 0x1.715476p0f, ln2High = 0x1.62e4p-1f,
                  ln2Low = 0x1.7f7d1cp-20f, toInteger = 0x1.8p23f;
  const float bounded = x < least ? least : x;
  const float shifted = bounded * perLn2 + toInteger;
  const float power = shifted - toInteger;
  const float r = (bounded - power * ln2High) - power * ln2Low;
  constexpr int terms = 8; // the last ones of the coefficients
  float sum = float(coefficients[::terms - terms]);
  for (int i = 1; i < terms; ++i)
    sum = sum * r + float(coefficients[::terms - terms + i]);
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return x < least ? 0 : sum * scale;
}

CTXC_EACH_CPU static void shiftAndExponentiate(float *x, const float *shifts, int64_t size) {
  for (int64_t k = 0; k < size; ++k)
    x[k] = exponential(x[k] - shifts[k]);
}

void ctxc::exponentiate(float *x, const float *shifts, int64_t size) {
  shiftAndExponentiate(x, shifts, size);
}

CTXC_EACH_CPU static double weighted(const double *weights, const float *a, const float *b,
                                     int64_t size) {
  return detail::sumEach(size,
                         [=](int64_t k) { return weights[k] * (double(a[k]) - double(b[k])); });
}

double ctxc::sumOfDifferences(const double *weights, const float *a, const float *b, int64_t size) {
  return weighted(weights, a, b, size);
}
