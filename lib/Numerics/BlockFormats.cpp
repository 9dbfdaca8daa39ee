// Decoders of GGUF's block formats. Each inner loop has a fixed length and no branch, which the
// compiler turns into vector code for each kind of processor (target_clones).
#include "ctxc/Numerics/BlockFormats.h"
#include "ctxc/Numerics/EachCpu.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include <cstring>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

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

//===----------------------------------------------------------------------===//
// 32 elements: the first 16 in the low halves of 16 bytes, the others in the high ones
//===----------------------------------------------------------------------===//

// d (q − 8): d, 16 bytes
CTXC_EACH_CPU void decodeQ4_0(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 18, to += 32) {
    float d = half(from);
    for (int i = 0; i < 16; ++i) {
      to[i] = d * float((from[2 + i] & 15) - 8);
      to[i + 16] = d * float((from[2 + i] >> 4) - 8);
    }
  }
}

// d q + m: d, m, 16 bytes
CTXC_EACH_CPU void decodeQ4_1(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 20, to += 32) {
    float d = half(from), m = half(from + 2);
    for (int i = 0; i < 16; ++i) {
      to[i] = d * float(from[4 + i] & 15) + m;
      to[i + 16] = d * float(from[4 + i] >> 4) + m;
    }
  }
}

// d (q − 16): d, the fifth bits as one word, 16 bytes
CTXC_EACH_CPU void decodeQ5_0(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 22, to += 32) {
    float d = half(from);
    uint32_t fifth = word(from + 2);
    for (int i = 0; i < 16; ++i) {
      int low = (from[6 + i] & 15) | int(fifth >> i & 1) << 4;
      int high = (from[6 + i] >> 4) | int(fifth >> (i + 16) & 1) << 4;
      to[i] = d * float(low - 16);
      to[i + 16] = d * float(high - 16);
    }
  }
}

// d q + m: d, m, the fifth bits as one word, 16 bytes
CTXC_EACH_CPU void decodeQ5_1(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 24, to += 32) {
    float d = half(from), m = half(from + 2);
    uint32_t fifth = word(from + 4);
    for (int i = 0; i < 16; ++i) {
      int low = (from[8 + i] & 15) | int(fifth >> i & 1) << 4;
      int high = (from[8 + i] >> 4) | int(fifth >> (i + 16) & 1) << 4;
      to[i] = d * float(low) + m;
      to[i + 16] = d * float(high) + m;
    }
  }
}

// d q: d, 32 signed bytes
CTXC_EACH_CPU void decodeQ8_0(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 34, to += 32) {
    float d = half(from);
    for (int i = 0; i < 32; ++i)
      to[i] = d * float(int8_t(from[2 + i]));
  }
}

/// Sign, two bits of exponent, one of fraction, in halves: 0, 1, 2, 3, 4, 6, 8, 12.
int halves(uint32_t element) {
  int exponent = element >> 1 & 3, fraction = element & 1;
  int magnitude = exponent ? (2 + fraction) << (exponent - 1) : fraction;
  return element & 8 ? -magnitude : magnitude;
}

// 2^(e − 128) q, q in halves: e, 16 bytes
CTXC_EACH_CPU void decodeBlockMXFP4(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 17, to += 32) {
    // A power of two; the smallest two are no normal numbers.
    uint32_t e = from[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    float d;
    std::memcpy(&d, &bits, sizeof d);
    for (int i = 0; i < 16; ++i) {
      to[i] = d * float(halves(from[1 + i] & 15));
      to[i + 16] = d * float(halves(from[1 + i] >> 4));
    }
  }
}

//===----------------------------------------------------------------------===//
// 256 elements
//===----------------------------------------------------------------------===//

/// The 6-bit scale and minimum of eight sub-blocks, from 12 bytes: those of the first four lie
/// in the low six bits of bytes 0 to 3 and 4 to 7; of the others, the low four bits in bytes 8 to
/// 11 and the high two on top of the first four's.
struct SubScales {
  uint8_t scale[8], minimum[8];
};
SubScales subScales(const uint8_t *at) {
  SubScales sub;
  for (int i = 0; i < 4; ++i) {
    sub.scale[i] = at[i] & 63;
    sub.minimum[i] = at[i + 4] & 63;
    sub.scale[i + 4] = (at[i + 8] & 15) | (at[i] >> 6) << 4;
    sub.minimum[i + 4] = at[i + 8] >> 4 | (at[i + 4] >> 6) << 4;
  }
  return sub;
}

// d s q − e t, with s and t for each 32: d, e, 12 bytes of s and t, 128 bytes of q, of which 32
// hold 64 elements, the first 32 in the low halves
CTXC_EACH_CPU void decodeQ4_K(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 144) {
    float d = half(from), e = half(from + 2);
    SubScales sub = subScales(from + 4);
    const uint8_t *q = from + 16;
    for (int pair = 0; pair < 4; ++pair, q += 32, to += 64) {
      float d0 = d * sub.scale[2 * pair], m0 = e * sub.minimum[2 * pair];
      float d1 = d * sub.scale[2 * pair + 1], m1 = e * sub.minimum[2 * pair + 1];
      for (int i = 0; i < 32; ++i) {
        to[i] = d0 * float(q[i] & 15) - m0;
        to[i + 32] = d1 * float(q[i] >> 4) - m1;
      }
    }
  }
}

// The same with a fifth bit: d, e, 12 bytes of s and t, 32 bytes of fifth bits (bit j of byte i:
// element i of the j-th 32), 128 bytes
CTXC_EACH_CPU void decodeQ5_K(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 176) {
    float d = half(from), e = half(from + 2);
    SubScales sub = subScales(from + 4);
    const uint8_t *fifth = from + 16, *q = from + 48;
    for (int pair = 0; pair < 4; ++pair, q += 32, to += 64) {
      float d0 = d * sub.scale[2 * pair], m0 = e * sub.minimum[2 * pair];
      float d1 = d * sub.scale[2 * pair + 1], m1 = e * sub.minimum[2 * pair + 1];
      for (int i = 0; i < 32; ++i) {
        int low = (q[i] & 15) | (fifth[i] >> (2 * pair) & 1) << 4;
        int high = (q[i] >> 4) | (fifth[i] >> (2 * pair + 1) & 1) << 4;
        to[i] = d0 * float(low) - m0;
        to[i + 32] = d1 * float(high) - m1;
      }
    }
  }
}

// d s (q − 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16 of s,
// d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the next
// 32, and in the high halves of both; their high bits in one byte each.
CTXC_EACH_CPU void decodeQ6_K(int64_t blocks, const uint8_t *from, float *to) {
  for (; blocks > 0; --blocks, from += 210) {
    float d = half(from + 208);
    for (int part = 0; part < 2; ++part, to += 128) {
      const uint8_t *low = from + 64 * part, *top = from + 128 + 32 * part,
                    *s = from + 192 + 8 * part;
      for (int quarter = 0; quarter < 4; ++quarter)
        for (int i = 0; i < 32; ++i) {
          int four = low[i + 32 * (quarter & 1)] >> (quarter & 2 ? 4 : 0) & 15;
          int two = top[i] >> (2 * quarter) & 3;
          float scale = d * float(int8_t(s[2 * quarter + i / 16]));
          to[32 * quarter + i] = scale * float((four | two << 4) - 32);
        }
    }
  }
}

/// A format's decoder, for blocks or for a matrix whose scales lie apart.
constexpr struct {
  void (*blocks)(int64_t, const uint8_t *, float *);
  void (*scaled)(const ctxc_scaled_matrix *, int64_t, int64_t, float *);
  int64_t elements, bytes;
} decoders[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  {decode##NAME, nullptr, ELEMENTS, BYTES},
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  {nullptr, ctxc_decode_##NAME_IN_TEXT, ELEMENTS, BYTES},
#include "ctxc/Support/BlockFormats.def"
};

} // namespace

void ctxc_decode(int32_t format, const void *stored, int64_t first, int64_t count, float *to) {
  const auto &decoder = decoders[format];
  if (!decoder.scaled) {
    const auto *bytes = static_cast<const uint8_t *>(stored);
    bytes += first / decoder.elements * decoder.bytes;
    return decoder.blocks(count / decoder.elements, bytes, to);
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
