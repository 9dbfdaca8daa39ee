// Rounding to 8 bits: the definition, written out, and the numbers at its edges.
#include "ctxc/Numerics/ByteVectors.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

std::vector<ctxc_byte_span> rounded(const std::vector<float> &x, int64_t vectors = 1) {
  int64_t width = int64_t(x.size()) / vectors,
          spans = (width + CTXC_BYTE_SPAN - 1) / CTXC_BYTE_SPAN;
  std::vector<ctxc_byte_span> to(spans * vectors);
  ctxc_round_to_bytes(x.data(), 0, vectors, width, to.data());
  return to;
}

TEST(ByteVectors, AreTheDefinition) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const int64_t width = 300;
  std::vector<float> x(2 * width);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * std::pow(10.0f, float(i / 32 % 7) - 3.0f);
  std::vector<ctxc_byte_span> spans = rounded(x, 2);
  for (int64_t v = 0; v < 2; ++v)
    for (int64_t first = 0; first < 2 * CTXC_BYTE_SPAN; first += CTXC_BYTE_GROUP) {
      const ctxc_byte_span &span = spans[2 * v + first / CTXC_BYTE_SPAN];
      int64_t group = first % CTXC_BYTE_SPAN / CTXC_BYTE_GROUP;
      auto number = [&](int64_t i) { return first + i < width ? x[v * width + first + i] : 0.0f; };
      float largest = 0;
      for (int64_t i = 0; i < CTXC_BYTE_GROUP; ++i)
        largest = std::max(largest, std::abs(number(i)));
      EXPECT_EQ(span.scales[group], largest / 127.0f);
      int32_t halves[2] = {0, 0};
      for (int64_t i = 0; i < CTXC_BYTE_GROUP; ++i) {
        float exact = largest > 0 ? number(i) / (largest / 127.0f) : 0.0f;
        int q = span.numbers[group * CTXC_BYTE_GROUP + i];
        EXPECT_EQ(q, int(std::nearbyint(exact))) << v << ", " << first + i;
        halves[i / 16] += q;
        EXPECT_EQ(span.pieces[group % 2 * 128 + i / 16 * 64 + group / 2 * 16 + i % 16], q);
      }
      EXPECT_EQ(span.of_halves[2 * group], -halves[0]);
      EXPECT_EQ(span.of_halves[2 * group + 1], -halves[1]);
      EXPECT_EQ(span.negative_sums[group], -halves[0] - halves[1]);
      EXPECT_EQ(span.scaled_sums[group], span.scales[group] * float(halves[0] + halves[1]));
    }
}

TEST(ByteVectors, ZerosAndTheSmallestNumbersStayInRange) {
  for (float unit :
       {0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min()}) {
    std::vector<float> x(CTXC_BYTE_GROUP);
    for (int i = 0; i < CTXC_BYTE_GROUP; ++i)
      x[i] = unit * float(6 * i - 93);
    ctxc_byte_span span = rounded(x).front();
    for (int i = 0; i < CTXC_BYTE_GROUP; ++i) {
      EXPECT_LE(std::abs(int(span.numbers[i])), 127);
      EXPECT_LE(std::abs(span.scales[0] * float(span.numbers[i]) - x[i]),
                span.scales[0] == 0 ? 93 * unit : span.scales[0] * 32);
    }
  }
}

TEST(ByteVectors, WhatIsNotFiniteIsSeen) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(2 * CTXC_BYTE_GROUP, 1.0f);
    x[3] = bad;
    ctxc_byte_span span = rounded(x).front();
    EXPECT_FALSE(std::isfinite(span.scales[0]));
    EXPECT_TRUE(std::isnan(span.scaled_sums[0]));
    EXPECT_EQ(span.scales[1], 1.0f / 127.0f);
  }
}

} // namespace
