#include "ctxc/Checkpoint/DType.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace ctxc;

namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::U64); ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtypeNamed(nameOf(dtype)), dtype);
  }
  EXPECT_EQ(dtypeNamed("f32"), std::nullopt);
  EXPECT_EQ(bitsOf(DType::F6E2M3), 6u);
  EXPECT_EQ(bitsOf(DType::BF16), 16u);
}

/// Rounding to nearest even by its definition: the nearer of the two neighbours in the target type;
/// if both are equally near, the one with an even last bit.
uint16_t nearest(float x, float (*widen)(uint16_t), uint16_t infinity) {
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  double magnitude = std::fabs(static_cast<double>(x));
  uint16_t low = 0, high = infinity; // bit patterns of positive numbers are ordered
  while (high - low > 1) {
    uint16_t middle = low + (high - low) / 2;
    (widen(middle) <= magnitude ? low : high) = middle;
  }
  double below = widen(low);
  // The number after the largest finite one, if there were no limit.
  double above = high == infinity ? below + (below - widen(low - 1)) : widen(high);
  if (magnitude - below < above - magnitude)
    return sign | low;
  if (magnitude - below > above - magnitude)
    return sign | high;
  return sign | (low % 2 == 0 ? low : high);
}

TEST(DType, RoundsToNearestEven) {
  // Goes over float's bit patterns with an odd step, through all exponents; and over every halfway
  // point of f16 with its two neighbours.
  auto check = [](float x) {
    if (!std::isfinite(x))
      return;
    ASSERT_EQ(floatToBf16(x), nearest(x, bf16ToFloat, 0x7f80)) << x;
    ASSERT_EQ(floatToF16(x), nearest(x, f16ToFloat, 0x7c00)) << x;
  };
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 65537 * 7) {
    uint32_t word = static_cast<uint32_t>(bits);
    float x;
    memcpy(&x, &word, 4);
    check(x);
  }
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    float halfway = (f16ToFloat(h) + f16ToFloat(h + 1)) / 2;
    for (float x : {halfway, std::nextafter(halfway, 0.f), std::nextafter(halfway, 1e9f)})
      check(x);
  }
  for (float x : {65519.99f, 65520.f, 65504.f, 3.4e38f, 1e-45f, 0x1p-25f, 0x1.002p-25f})
    check(x);
}

TEST(DType, EveryPatternSurvivesWidening) {
  for (int i = 0; i < 0x10000; ++i) {
    auto bits = static_cast<uint16_t>(i);
    if (!std::isnan(bf16ToFloat(bits))) {
      ASSERT_EQ(floatToBf16(bf16ToFloat(bits)), bits);
    } else {
      ASSERT_TRUE(std::isnan(bf16ToFloat(floatToBf16(bf16ToFloat(bits)))));
    }
    if (!std::isnan(f16ToFloat(bits))) {
      ASSERT_EQ(floatToF16(f16ToFloat(bits)), bits);
    } else {
      ASSERT_TRUE(std::isnan(f16ToFloat(floatToF16(f16ToFloat(bits)))));
    }
  }
}

TEST(DType, NanWithLowPayloadStaysNan) {
  uint32_t word = 0x7f800001;
  float nan;
  memcpy(&nan, &word, 4);
  EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(nan))));
  EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(nan))));
}

TEST(DType, SpansNeedNoAlignment) {
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    uint8_t buffer[33];
    const double values[] = {1.5, -2, 0, 96};
    writeDoubles(dtype, values, buffer + 1);
    double back[4];
    float narrow[4];
    readDoubles(dtype, buffer + 1, back);
    readFloats(dtype, buffer + 1, narrow);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(back[i], values[i]);
      EXPECT_EQ(narrow[i], values[i]);
    }
    uint8_t again[33];
    writeFloats(dtype, narrow, again + 1);
    EXPECT_EQ(memcmp(again + 1, buffer + 1, bitsOf(dtype) / 2), 0);
  }
}

TEST(DType, AddsAsReadingAddingAndWriting) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64})
    for (size_t count : {0, 1, 7, 8, 33, 100}) {
      std::vector<double> numbers(count), change(count), sums(count);
      for (double &number : numbers)
        number = normal(random);
      for (double &number : change)
        number = normal(random) * std::exp2(-20 * normal(random));
      if (count > 3) {
        numbers[0] = infinity, change[0] = -infinity; // NaN
        numbers[1] = -infinity;
        change[2] = infinity;
        numbers[3] = change[3] = -0.0;
      }
      std::vector<uint8_t> stored(bytesOf(dtype, count) + 1), expected(stored), made(stored);
      writeDoubles(dtype, numbers, stored.data() + 1);
      readDoubles(dtype, stored.data() + 1, sums);
      double factor = normal(random);
      for (size_t i = 0; i < count; ++i) {
        volatile double product = factor * change[i]; // volatile, so that it is rounded
        sums[i] += product;
      }
      writeDoubles(dtype, sums, expected.data() + 1);
      addDoubles(dtype, stored.data() + 1, factor, change, made.data() + 1);
      EXPECT_EQ(made, expected) << nameOf(dtype).str() << " " << count;
    }
}

} // namespace
