#include "ctxc/Numerics/FixedVectors.h"
#include "ctxc/Numerics/EachCpu.h"
#include <algorithm>
#include <cmath>
#include <cstring>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

static_assert(sizeof(ctxc_fixed_span) == 17 * 64, "expected an odd number of cache lines");

namespace {

constexpr int size = CTXC_FIXED_SPAN, block = CTXC_FIXED_BLOCK, blocks = size / block;

float floatOf(uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// The exponent of u, as a float32 has it. A significand of `most` and 22 fractional bits is the
/// largest whose digits fit.
[[gnu::always_inline]] inline uint32_t exponentOfUnit(uint32_t largest) {
  constexpr uint32_t most = 2 * (127 * 0x10101 - (1 << 22));
  uint32_t exponent = (largest >> 23) + ((largest & 0x7fffff) > most);
  return std::max(exponent, 23u) - 22; // a normal number
}

[[gnu::always_inline]] inline void roundSpan(const float *x, ctxc_fixed_span &to) {
  uint32_t bits[size], largest[blocks];
  std::memcpy(bits, x, sizeof bits);
  for (int at = 0; at < blocks; ++at) {
    largest[at] = 0;
    for (int i = 0; i < block; ++i)
      largest[at] = std::max(largest[at], bits[block * at + i] & 0x7fffffff);
  }
  int32_t v[size];
  float units[blocks], sums[blocks];
  for (int at = 0; at < blocks; ++at) {
    bool isFinite = largest[at] < 0x7f800000;
    uint32_t exponent = exponentOfUnit(isFinite ? largest[at] : 0);
    float inverse = floatOf((254 - exponent) << 23);
    units[at] = floatOf(isFinite ? exponent << 23 : largest[at]);
    int32_t sum = 0;
    for (int i = 0; i < block; ++i) {
      float number = isFinite ? x[block * at + i] * inverse : 0.0f;
      v[block * at + i] = int32_t(number + (number < 0 ? -0.5f : 0.5f));
      sum += v[block * at + i];
    }
    sums[at] = units[at] * float(sum);
  }
  int32_t runs[4][64];
  for (int i = 0; i < size; i += 8)
    std::memcpy(runs[i / 128 * 2 + i / 8 % 2] + i % 128 / 16 * 8, v + i, 8 * sizeof *v);
  for (int run = 0; run < 4; ++run)
    for (int i = 0; i < 64; ++i) {
      int32_t number = runs[run][i], low = int8_t(number), rest = (number - low) >> 8;
      to.digits[2][64 * run + i] = int8_t(low);
      to.digits[1][64 * run + i] = int8_t(rest);
      to.digits[0][64 * run + i] = int8_t((rest - int8_t(rest)) >> 8);
    }
  for (int half = 0; half < 2; ++half) {
    int32_t twos[64];
    for (int i = 0; i < 64; ++i)
      twos[i] = runs[2 * half][i] + runs[2 * half + 1][i];
    for (int lane = 0; lane < 16; ++lane)
      to.negative_eights[16 * half + lane] =
          -(twos[4 * lane] + twos[4 * lane + 1] + twos[4 * lane + 2] + twos[4 * lane + 3]);
  }
  for (int lane = 0; lane < 32; ++lane)
    to.units[lane] = units[lane / 2];
  for (int group = 0; group < 8; ++group)
    to.scaled_sums[group] = sums[2 * group] + sums[2 * group + 1];
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
