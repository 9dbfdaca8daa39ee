// Rounding to fixed point: the definition, written out, and the numbers at its edges.
#include "ctxc/Numerics/FixedVectors.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

constexpr int64_t size = CTXC_FIXED_SPAN; // of a span

std::vector<ctxc_fixed_span> inFixedPoint(const std::vector<float> &x, int64_t vectors = 1) {
  int64_t width = int64_t(x.size()) / vectors, spans = (width + size - 1) / size;
  std::vector<ctxc_fixed_span> to(spans * vectors);
  ctxc_round_to_fixed(x.data(), 0, vectors, width, to.data());
  return to;
}

/// Where number i of a span has its digits.
int64_t placeOf(int64_t i) { return i / 128 * 128 + i / 8 % 2 * 64 + i % 128 / 16 * 8 + i % 8; }

int64_t integerOf(const ctxc_fixed_span &span, int64_t i) {
  int64_t v = 0;
  for (const auto &digits : span.digits)
    v = 256 * v + digits[placeOf(i)];
  return v;
}

float unitOf(const ctxc_fixed_span &span, int64_t i) {
  return span.units[placeOf(i) / 128 * 16 + placeOf(i) % 64 / 4];
}

TEST(FixedVectors, AreTheDefinition) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const int64_t width = 300, spans = 2;
  std::vector<float> x(2 * width);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * std::pow(10.0f, float(i / 32 % 7) - 3.0f);
  std::vector<ctxc_fixed_span> all = inFixedPoint(x, 2);
  for (int64_t v = 0; v < 2; ++v)
    for (int64_t s = 0; s < spans; ++s) {
      const ctxc_fixed_span &span = all[spans * v + s];
      auto number = [&](int64_t i) {
        return s * size + i < width ? x[v * width + s * size + i] : 0.0f;
      };
      std::vector<int64_t> eights(32);
      std::vector<double> groups(8);
      for (int64_t i = 0; i < size; ++i) {
        float unit = unitOf(span, i), largest = 0;
        for (int64_t k = i / 16 * 16; k < i / 16 * 16 + 16; ++k)
          largest = std::max(largest, std::abs(number(k)));
        int exponent;
        EXPECT_EQ(std::frexp(unit, &exponent), 0.5f);
        if (largest > 0)
          EXPECT_LE(double(unit), 1.004 * std::ldexp(double(largest), -22));
        int64_t integer = integerOf(span, i);
        EXPECT_LE(std::abs(double(number(i)) / unit - double(integer)), 0.5) << i;
        EXPECT_LE(std::abs(integer), 127 * 0x10101);
        eights[placeOf(i) / 128 * 16 + placeOf(i) % 64 / 4] -= integer;
        groups[i / 32] += double(unit) * double(integer);
      }
      for (int64_t i = 0; i < 32; ++i)
        EXPECT_EQ(span.negative_eights[i], eights[i]) << i;
      for (int64_t i = 0; i < 8; ++i) {
        double magnitude = 0;
        for (int64_t k = 0; k < 32; ++k)
          magnitude += std::abs(number(32 * i + k));
        EXPECT_NEAR(span.scaled_sums[i], groups[i], 0x1p-22 * magnitude) << i;
      }
    }
}

/// A register of 64 bytes of each of two runs has the same 16 numbers in the same places.
TEST(FixedVectors, BytesOfTwoRunsShareSixteenNumbers) {
  for (int64_t i = 0; i < size; ++i)
    EXPECT_EQ(placeOf(i) / 128 * 8 + placeOf(i) % 64 / 8, i / 16);
}

TEST(FixedVectors, TheLargestNumbersFitTheirDigits) {
  for (float largest :
       {1.0f, std::nextafter(2.0f, 0.0f), 1.9921799f, 1.9921875f, 1.9922f, 1.9960938f,
        std::numeric_limits<float>::max(), std::numeric_limits<float>::min()})
    for (float sign : {1.0f, -1.0f}) {
      std::vector<float> x(size, sign * largest);
      ctxc_fixed_span span = inFixedPoint(x).front();
      for (int64_t i = 0; i < size; ++i) {
        int64_t v = integerOf(span, i);
        EXPECT_LE(std::abs(v), 127 * 0x10101) << largest;
        EXPECT_LE(std::abs(double(x[i]) / unitOf(span, i) - double(v)), 0.5) << largest;
      }
    }
}

TEST(FixedVectors, ZerosAndTheSmallestNumbersStayInRange) {
  for (float least : {0.0f, std::numeric_limits<float>::denorm_min()}) {
    std::vector<float> x(size);
    for (int64_t i = 0; i < size; ++i)
      x[i] = least * float(6 * i - 93);
    ctxc_fixed_span span = inFixedPoint(x).front();
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(unitOf(span, i), std::numeric_limits<float>::min());
      EXPECT_LE(std::abs(x[i] - unitOf(span, i) * float(integerOf(span, i))), unitOf(span, i) / 2);
    }
  }
}

TEST(FixedVectors, WhatIsNotFiniteIsSeen) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(size, 1.0f);
    x[3] = bad;
    ctxc_fixed_span span = inFixedPoint(x).front();
    EXPECT_FALSE(std::isfinite(unitOf(span, 5)));
    EXPECT_FALSE(std::isfinite(span.scaled_sums[0]));
    EXPECT_EQ(integerOf(span, 5), 0);
    EXPECT_EQ(unitOf(span, 16) * float(integerOf(span, 16)), 1.0f);
    EXPECT_EQ(span.scaled_sums[1], 32.0f);
  }
}

} // namespace
