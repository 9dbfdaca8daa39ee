#include "ctxc/Numerics/ByteVectors.h"
#include "ctxc/Numerics/EachCpu.h"
#include <algorithm>
#include <cmath>
#include <cstring>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

namespace {

constexpr int group = CTXC_BYTE_GROUP, groups = CTXC_BYTE_SPAN / group;
/// Added to and taken from a small float32 it leaves the nearest integer.
constexpr float rounder = 0x1.8p23f;

/// The largest magnitude, as bits, of which NaN's are the largest.
[[gnu::always_inline]] inline float largestOf(const float *x) {
  uint32_t largest = 0;
  for (int i = 0; i < group; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    largest = std::max(largest, bits & 0x7fffffff);
  }
  float number;
  std::memcpy(&number, &largest, sizeof number);
  return number;
}

[[gnu::always_inline]] inline void roundGroup(const float *x, int at, ctxc_byte_span &to) {
  float scale = largestOf(x) / 127.0f;
  // Where all are zero, or so small that the scale is, nothing is left; a scale that is not finite
  // says enough by itself.
  bool counts = scale > 0.0f && scale <= 0x1p126f;
  float divisor = counts ? scale : 1.0f, keep = counts ? 127.0f : 0.0f;
  int32_t integers[group];
  for (int i = 0; i < group; ++i) {
    float quotient = x[i] / divisor;
    quotient = quotient < keep ? quotient : keep; // the smallest scales are inexact
    quotient = quotient > -keep ? quotient : -keep;
    integers[i] = int32_t((quotient + rounder) - rounder);
  }
  int32_t halves[2] = {0, 0};
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < group / 2; ++i)
      halves[half] -= integers[half * group / 2 + i];
  for (int i = 0; i < group; ++i)
    to.numbers[at * group + i] = int8_t(integers[i]);
  constexpr int piece = group / 2, run = groups / 2 * piece;
  for (int half = 0; half < 2; ++half)
    std::memcpy(to.pieces + (2 * (at % 2) + half) * run + at / 2 * piece,
                to.numbers + at * group + half * piece, piece);
  to.of_halves[2 * at] = halves[0], to.of_halves[2 * at + 1] = halves[1];
  to.negative_sums[at] = halves[0] + halves[1];
  to.scales[at] = scale;
  to.scaled_sums[at] = scale * float(-to.negative_sums[at]);
}

CTXC_EACH_CPU void roundVector(const float *x, int64_t width, ctxc_byte_span *to) {
  for (int64_t done = 0; done < width; done += CTXC_BYTE_SPAN, ++to)
    for (int at = 0; at < groups; ++at) {
      int64_t from = done + at * group, left = width - from;
      if (left >= group) {
        roundGroup(x + from, at, *to);
        continue;
      }
      float padded[group] = {};
      for (int64_t i = 0; i < left; ++i)
        padded[i] = x[from + i];
      roundGroup(padded, at, *to);
    }
}

} // namespace

void ctxc_round_to_bytes(const float *x, int64_t first, int64_t last, int64_t width,
                         ctxc_byte_span *to) {
  int64_t spans = (width + CTXC_BYTE_SPAN - 1) / CTXC_BYTE_SPAN;
  for (int64_t i = first; i < last; ++i)
    roundVector(x + i * width, width, to + i * spans);
}
