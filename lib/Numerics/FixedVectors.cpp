#include "ctxc/Numerics/FixedVectors.h"
#include "ctxc/Numerics/EachCpu.h"
#include <algorithm>
#include <cmath>
#include <cstring>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

static_assert(sizeof(ctxc_fixed_span) == 15 * 64, "expected an odd number of cache lines");

namespace {

constexpr int size = CTXC_FIXED_SPAN;

float floatOf(uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

[[gnu::always_inline]] inline uint32_t largestOf(const float *x) {
  uint32_t largest = 0;
  for (int i = 0; i < size; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    largest = std::max(largest, bits & 0x7fffffff);
  }
  return largest;
}

/// The exponent of u, as a float32 has it. A significand of `most` and 22 fractional bits is the
/// largest whose digits fit.
uint32_t exponentOfUnit(uint32_t largest) {
  constexpr uint32_t most = 2 * (127 * 0x10101 - (1 << 22));
  uint32_t exponent = (largest >> 23) + ((largest & 0x7fffff) > most);
  return std::max(exponent, 23u) - 22; // a normal number
}

[[gnu::always_inline]] inline void roundSpan(const float *x, ctxc_fixed_span &to) {
  uint32_t largest = largestOf(x);
  if (largest >= 0x7f800000) {
    to = {};
    to.unit = floatOf(largest);
    return;
  }
  uint32_t exponent = exponentOfUnit(largest);
  to.unit = floatOf(exponent << 23);
  float inverse = floatOf((254 - exponent) << 23);
  int32_t v[size];
  for (int i = 0; i < size; ++i) {
    float number = x[i] * inverse;
    v[i] = int32_t(number + (number < 0 ? -0.5f : 0.5f));
  }
  int32_t runs[size];
  for (int half = 0; half < 2; ++half)
    for (int part = 0; part < 2; ++part)
      for (int i = 0; i < 64; ++i)
        runs[128 * half + 64 * part + i] = v[128 * half + 16 * (i / 8) + 8 * part + i % 8];
  for (int i = 0; i < size; ++i) {
    int32_t low = int8_t(runs[i]), rest = (runs[i] - low) >> 8, middle = int8_t(rest);
    to.digits[2][i] = int8_t(low);
    to.digits[1][i] = int8_t(middle);
    to.digits[0][i] = int8_t((rest - middle) >> 8);
  }
  for (int half = 0; half < 2; ++half)
    for (int lane = 0; lane < 16; ++lane) {
      int32_t sum = 0;
      for (int i = 0; i < 4; ++i)
        sum += runs[128 * half + 4 * lane + i] + runs[128 * half + 64 + 4 * lane + i];
      to.negative_eights[16 * half + lane] = -sum;
    }
  for (int group = 0; group < 8; ++group) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i)
      sum += v[32 * group + i];
    to.sums_of_32[group] = float(sum);
  }
}

CTXC_EACH_CPU void roundVector(const float *x, int64_t width, ctxc_fixed_span *to) {
  for (int64_t done = 0; done < width; done += size, ++to) {
    int64_t left = width - done;
    if (left >= size) {
      roundSpan(x + done, *to);
      continue;
    }
    float padded[size] = {};
    std::copy_n(x + done, left, padded);
    roundSpan(padded, *to);
  }
}

} // namespace

void ctxc_round_to_fixed(const float *x, int64_t first, int64_t last, int64_t width,
                         ctxc_fixed_span *to) {
  int64_t spans = (width + size - 1) / size;
  for (int64_t i = first; i < last; ++i)
    roundVector(x + i * width, width, to + i * spans);
}
