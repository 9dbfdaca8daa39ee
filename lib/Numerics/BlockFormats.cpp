// Decoders of GGUF's block formats, from their layouts. Each inner loop has a fixed length and no
// branch, which the compiler turns into vector code for each kind of processor (target_clones).
#include "ctxc/Numerics/BlockFormats.h"
#include "ctxc/Numerics/EachCpu.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "ctxc/Support/BlockLayouts.h"
#include <algorithm>
#include <cstring>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

using namespace ctxc::blocks;

namespace {

/// A float16, exactly.
float half(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 0x1f,
           fraction = bits & 0x3ff, wide;
  if (exponent == 0) { // zero and subnormals
    float magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  wide = exponent == 0x1f ? sign | 0x7f800000 | fraction << 13
                          : sign | (exponent + 112) << 23 | fraction << 13;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint32_t word(const uint8_t *at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

/// Sign, two bits of exponent, one of fraction, in halves: 0, 1, 2, 3, 4, 6, 8, 12.
int halves(uint32_t element) {
  int exponent = element >> 1 & 3, fraction = element & 1;
  int magnitude = exponent ? (2 + fraction) << (exponent - 1) : fraction;
  return element & 8 ? -magnitude : magnitude;
}

/// What the numbers of each group are multiplied by, and what is added then.
template <const Layout &layout>
[[gnu::always_inline]] inline void readScales(const uint8_t *block, float *scale, float *minimum) {
  const float d = half(block + layout.scaleAt);
  const uint8_t *at = block + layout.groupsAt;
  if constexpr (layout.scale == Half) {
    *scale = d;
    *minimum = layout.minimumAt ? half(block + layout.minimumAt) : 0;
  } else if constexpr (layout.scale == PowerOfTwo) { // the smallest two are no normal numbers
    uint32_t e = block[layout.scaleAt], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    std::memcpy(scale, &bits, sizeof bits);
  } else if constexpr (layout.scale == Bytes) {
    for (int i = 0; i < layout.elements / layout.group(); ++i)
      scale[i] = d * float(int8_t(at[i]));
  } else {
    // Those of the first four groups lie in the low six bits of bytes 0 to 3 and 4 to 7; of the
    // others, the low four bits in bytes 8 to 11 and the high two on top of the first four's.
    static_assert(layout.scale == SixBits);
    const float e = half(block + layout.minimumAt);
    for (int i = 0; i < 4; ++i) {
      scale[i] = d * float(at[i] & 63);
      minimum[i] = -(e * float(at[i + 4] & 63));
      scale[i + 4] = d * float((at[i + 8] & 15) | (at[i] >> 6) << 4);
      minimum[i + 4] = -(e * float(at[i + 8] >> 4 | (at[i + 4] >> 6) << 4));
    }
  }
}

template <const Layout &layout>
[[gnu::always_inline]] inline void decodeBlocks(int64_t blocks, const uint8_t *__restrict from,
                                                float *__restrict to) {
  constexpr BitPlane low = layout.low, top = layout.top;
  constexpr bool hasMinimum = layout.scale == SixBits || layout.minimumAt;
  // The bits of so many numbers lie in the same places of bytes that follow each other.
  constexpr int run = int(std::min(layout.group(), low.apart));
  for (; blocks > 0; --blocks, from += layout.bytes, to += layout.elements) {
    float scales[layout.elements / layout.group()], minima[layout.elements / layout.group()];
    readScales<layout>(from, scales, minima);
    for (int first = 0; first < layout.elements; first += run) {
      const float d = scales[first / layout.group()];
      const uint8_t *lowBytes = from + low.byteOf(first);
// A loop that is unrolled before it is made vector code becomes none.
#pragma clang loop unroll(disable)
      for (int i = 0; i < run; ++i) {
        uint32_t bits = lowBytes[i] >> low.bitOf(first) & ((1u << low.bits) - 1);
        if constexpr (top.bits && top.apart == 1) // of a word
          bits |= (word(from + top.at) >> (first + i) & 1) << low.bits;
        else if constexpr (top.bits != 0)
          bits |= (from[top.byteOf(first) + i] >> top.bitOf(first) & ((1u << top.bits) - 1))
                  << low.bits;
        int q = layout.numbers == E2M1     ? halves(bits)
                : layout.numbers == Signed ? int(int8_t(bits))
                                           : int(bits) - int(layout.zero);
        float scaled = d * float(q);
        to[first + i] = hasMinimum ? scaled + minima[first / layout.group()] : scaled;
      }
    }
  }
}

// A decoder of each format, for blocks or for a matrix whose scales lie apart.
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  constexpr Layout layout##NAME = {fields##NAME, ELEMENTS, BYTES};                                 \
  CTXC_EACH_CPU void decode##NAME(int64_t blocks, const uint8_t *from, float *to) {                \
    decodeBlocks<layout##NAME>(blocks, from, to);                                                  \
  }
#include "ctxc/Support/BlockFormats.def"

constexpr struct {
  void (*blocks)(int64_t, const uint8_t *, float *);
  void (*scaled)(const ctxc_scaled_matrix *, int64_t, int64_t, float *);
} decoders[] = {
#define CTXC_BLOCK_FORMAT(NAME, ...) {decode##NAME, nullptr},
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, ...) {nullptr, ctxc_decode_##NAME_IN_TEXT},
#include "ctxc/Support/BlockFormats.def"
};

} // namespace

void ctxc_decode(int32_t format, const void *stored, int64_t first, int64_t count, float *to) {
  const auto &decoder = decoders[format];
  if (!decoder.scaled) {
    const auto *bytes = static_cast<const uint8_t *>(stored);
    bytes += first / layouts[format].elements * layouts[format].bytes;
    return decoder.blocks(count / layouts[format].elements, bytes, to);
  }
  const auto *matrix = static_cast<const ctxc_scaled_matrix *>(stored);
  while (count > 0) {
    int64_t each = matrix->rows * matrix->columns;
    if (first < each) {
      int64_t n = each - first < count ? each - first : count;
      decoder.scaled(matrix, first, n, to);
      to += n;
      count -= n;
      first += n;
    }
    first -= each;
    ++matrix;
  }
}

void ctxc_decode_rows(int32_t format, int64_t rows, int64_t width, const void *table,
                      const int32_t *indices, float *to) {
  for (int64_t i = 0; i < rows; ++i)
    ctxc_decode(format, table, indices[i] * width, width, to + i * width);
}
