// fp8 and mxfp4: the number of every byte, every type of scale, and parts of a matrix.
#include "ctxc/Numerics/ScaledFormats.h"
#include "ctxc/Numerics/BlockFormats.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

/// The numbers of torch's float8_e4m3fn for the bytes 0 to 126, times 512; 127 is NaN.
constexpr int f8Times512[] = {
    0,      1,      2,      3,      4,      5,      6,     7,     8,     9,      10,     11,
    12,     13,     14,     15,     16,     18,     20,    22,    24,    26,     28,     30,
    32,     36,     40,     44,     48,     52,     56,    60,    64,    72,     80,     88,
    96,     104,    112,    120,    128,    144,    160,   176,   192,   208,    224,    240,
    256,    288,    320,    352,    384,    416,    448,   480,   512,   576,    640,    704,
    768,    832,    896,    960,    1024,   1152,   1280,  1408,  1536,  1664,   1792,   1920,
    2048,   2304,   2560,   2816,   3072,   3328,   3584,  3840,  4096,  4608,   5120,   5632,
    6144,   6656,   7168,   7680,   8192,   9216,   10240, 11264, 12288, 13312,  14336,  15360,
    16384,  18432,  20480,  22528,  24576,  26624,  28672, 30720, 32768, 36864,  40960,  45056,
    49152,  53248,  57344,  61440,  65536,  73728,  81920, 90112, 98304, 106496, 114688, 122880,
    131072, 147456, 163840, 180224, 196608, 212992, 229376};
static_assert(sizeof(f8Times512) / sizeof(int) == 127);

/// transformers' FP4_VALUES.
constexpr float f4[] = {+0.0, +0.5, +1.0, +1.5, +2.0, +3.0, +4.0, +6.0,
                        -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};

template <typename T> std::vector<uint8_t> bytesOf(std::vector<T> values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The positions of the formats in BlockFormats.def.
constexpr int blockMxfp4 = 8, f8e4m3 = 9, mxfp4 = 10;

TEST(ScaledFormats, EveryByteOfFp8) {
  std::vector<uint8_t> elements(256), scales = bytesOf<float>({0.75f});
  std::iota(elements.begin(), elements.end(), 0);
  ctxc_scaled_matrix m{elements.data(), scales.data(), 1, 256, 128, 256, CTXC_SCALE_F32};
  std::vector<float> numbers(256);
  ctxc_decode_f8e4m3(&m, 0, 256, numbers.data());
  for (int i = 0; i < 127; ++i) {
    float expected = float(f8Times512[i]) / 512 * 0.75f;
    EXPECT_EQ(numbers[i], expected) << i;
    EXPECT_EQ(numbers[128 + i], -expected) << i;
    EXPECT_TRUE(std::signbit(numbers[128 + i]));
  }
  EXPECT_TRUE(std::isnan(numbers[127]) && std::isnan(numbers[255]));
}

TEST(ScaledFormats, EveryByteOfMxfp4) {
  std::vector<uint8_t> elements(256), scales(16, 128);
  std::iota(elements.begin(), elements.end(), 0);
  ctxc_scaled_matrix m{elements.data(), scales.data(), 8, 64, 1, 32, CTXC_SCALE_E8M0};
  std::vector<float> numbers(512);
  ctxc_decode_mxfp4(&m, 0, 512, numbers.data());
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(numbers[2 * i], 2 * f4[i & 15]) << i;
    EXPECT_EQ(numbers[2 * i + 1], 2 * f4[i >> 4]) << i;
  }
  EXPECT_TRUE(std::signbit(numbers[16]));
}

TEST(ScaledFormats, EveryPowerOfTwo) {
  std::vector<uint8_t> elements(256 * 16, 0x02), scales(256); // 1, 0, 1, 0, …
  std::iota(scales.begin(), scales.end(), 0);
  ctxc_scaled_matrix m{elements.data(), scales.data(), 256, 32, 1, 32, CTXC_SCALE_E8M0};
  std::vector<float> numbers(256 * 32);
  ctxc_decode_mxfp4(&m, 0, numbers.size(), numbers.data());
  for (int i = 0; i < 255; ++i)
    EXPECT_EQ(numbers[32 * i], std::ldexp(1.0f, i - 127)) << i;
  EXPECT_TRUE(std::isnan(numbers[32 * 255]) && std::isnan(numbers[32 * 255 + 1]));
}

/// An fp8 matrix whose element (i, j) is 1 + (i + j) % 8 eighths.
struct Fp8 {
  static constexpr int rows = 7, columns = 11, blockRows = 3, blockColumns = 4, perRow = 3;
  Fp8(int32_t type, std::vector<uint8_t> scales) : scales(std::move(scales)) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        elements.push_back(uint8_t(0x38 + (i + j) % 8));
    matrix = {elements.data(), this->scales.data(), rows, columns, blockRows, blockColumns, type};
  }
  static float element(int at) { return 1 + (at / columns + at % columns) % 8 / 8.0f; }
  static int block(int at) {
    return at / columns / blockRows * perRow + at % columns / blockColumns;
  }
  std::vector<uint8_t> elements, scales;
  ctxc_scaled_matrix matrix;
};

TEST(ScaledFormats, BlocksAtTheEdgesAreCutAndAnyPartCanBeRead) {
  std::vector<float> scales(9);
  for (int i = 0; i < 9; ++i)
    scales[i] = 0.3f + 0.7f * float(i);
  Fp8 m(CTXC_SCALE_F32, bytesOf(scales));
  constexpr int all = Fp8::rows * Fp8::columns;
  for (int first = 0; first < all; ++first)
    for (int count : {1, 2, 5, 11, 30, all - first}) {
      if (first + count > all)
        continue;
      std::vector<float> numbers(count);
      ctxc_decode_f8e4m3(&m.matrix, first, count, numbers.data());
      for (int i = 0; i < count; ++i)
        ASSERT_EQ(numbers[i], Fp8::element(first + i) * scales[Fp8::block(first + i)])
            << first << " + " << i;
    }
}

TEST(ScaledFormats, ScalesOfOtherTypes) {
  std::vector<uint16_t> bf16(9);
  std::vector<uint8_t> powers(9);
  for (int i = 0; i < 9; ++i) {
    bf16[i] = uint16_t(0x3f80 + 9 * i); // 1, 1 + 9/128, …
    powers[i] = uint8_t(120 + i);
  }
  Fp8 first(CTXC_SCALE_BF16, bytesOf(bf16)), second(CTXC_SCALE_E8M0, powers);
  for (int at = 0; at < Fp8::rows * Fp8::columns; ++at) {
    float number, block = float(Fp8::block(at));
    ctxc_decode_f8e4m3(&first.matrix, at, 1, &number);
    EXPECT_EQ(number, Fp8::element(at) * (1 + 9 * block / 128));
    ctxc_decode_f8e4m3(&second.matrix, at, 1, &number);
    EXPECT_EQ(number, std::ldexp(Fp8::element(at), int(block) - 7));
  }
}

TEST(ScaledFormats, PartsOfMxfp4) {
  std::vector<uint8_t> elements(6 * 32), scales(12);
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = uint8_t(37 * i + 11);
  std::iota(scales.begin(), scales.end(), 121);
  ctxc_scaled_matrix m{elements.data(), scales.data(), 6, 64, 1, 32, CTXC_SCALE_E8M0};
  for (int first : {0, 1, 31, 32, 33, 64, 190})
    for (int count : {1, 31, 32, 33, 64, 65, 194}) {
      std::vector<float> numbers(count);
      ctxc_decode_mxfp4(&m, first, count, numbers.data());
      for (int i = 0; i < count; ++i) {
        int at = first + i, four = at % 2 ? elements[at / 2] >> 4 : elements[at / 2] & 15;
        ASSERT_EQ(numbers[i], std::ldexp(f4[four], scales[at / 32] - 127)) << first << " + " << i;
      }
    }
}

TEST(ScaledFormats, ABankIsOneMatrixBelowTheOther) {
  std::vector<float> one(9, 1.0f), two(9, 2.0f);
  Fp8 a(CTXC_SCALE_F32, bytesOf(one)), b(CTXC_SCALE_F32, bytesOf(two));
  ctxc_scaled_matrix bank[] = {a.matrix, b.matrix};
  constexpr int all = Fp8::rows * Fp8::columns;
  std::vector<float> numbers(2 * all - 20);
  ctxc_decode(f8e4m3, bank, 20, numbers.size(), numbers.data());
  for (int i = 20; i < 2 * all; ++i)
    ASSERT_EQ(numbers[i - 20], Fp8::element(i % all) * (i < all ? 1 : 2)) << i;
  float last;
  ctxc_decode(f8e4m3, bank, 2 * all - 1, 1, &last);
  EXPECT_EQ(last, 2 * Fp8::element(all - 1));

  int32_t rows[] = {5, 0};
  ctxc_decode_rows(f8e4m3, 2, Fp8::columns, bank, rows, numbers.data());
  for (int j = 0; j < Fp8::columns; ++j) {
    EXPECT_EQ(numbers[j], Fp8::element(5 * Fp8::columns + j));
    EXPECT_EQ(numbers[Fp8::columns + j], Fp8::element(j));
  }
}

// GGUF's blocks of the same numbers: the scale in front, the first 16 elements in the low halves.
TEST(ScaledFormats, BlocksOfMxfp4) {
  for (int exponent : {0, 1, 2, 127, 130, 253}) {
    uint8_t block[17] = {uint8_t(exponent)};
    for (int i = 0; i < 16; ++i)
      block[1 + i] = uint8_t(i | (15 - i) << 4);
    float numbers[32];
    ctxc_decode(blockMxfp4, block, 0, 32, numbers);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(numbers[i], std::ldexp(f4[i], exponent - 127)) << exponent << " " << i;
      EXPECT_EQ(numbers[16 + i], std::ldexp(f4[15 - i], exponent - 127)) << exponent << " " << i;
    }
  }
}

TEST(ScaledFormats, TheirPlacesInTheTable) {
  uint8_t elements[16], scale = 127;
  std::memset(elements, 0x22, sizeof elements);
  ctxc_scaled_matrix m{elements, &scale, 1, 32, 1, 32, CTXC_SCALE_E8M0};
  float numbers[32];
  ctxc_decode(mxfp4, &m, 0, 32, numbers);
  for (float x : numbers)
    EXPECT_EQ(x, 1);
}

} // namespace
