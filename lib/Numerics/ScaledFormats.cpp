// Decoders of formats whose scales lie in a tensor of their own. As in BlockFormats.cpp, inner
// loops have no branch, so that they become vector code.
#include "ctxc/Numerics/ScaledFormats.h"
#include "ctxc/Numerics/EachCpu.h"
#include <algorithm>
#include <cstring>
#include <limits>

// One rounding for each operation, in all clones.
#pragma STDC FP_CONTRACT OFF

namespace {

float bits(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// The scale at `index`.
float scaleAt(const ctxc_scaled_matrix &m, int64_t index) {
  switch (m.scale_type) {
  case CTXC_SCALE_F32: {
    float scale;
    std::memcpy(&scale, m.scales + 4 * index, sizeof scale);
    return scale;
  }
  case CTXC_SCALE_BF16: {
    uint16_t scale;
    std::memcpy(&scale, m.scales + 2 * index, sizeof scale);
    return bits(uint32_t(scale) << 16);
  }
  default: {
    uint32_t exponent = m.scales[index];
    if (exponent == 255)
      return std::numeric_limits<float>::quiet_NaN();
    return exponent == 0 ? 0x1p-127f : bits(exponent << 23);
  }
  }
}

/// Sign, four bits of exponent, three of fraction. The exponent's bias is 7, so that a normal
/// number is a float32 with the seven bits in place and 120 more in the exponent; below, numbers
/// count units of 2^-9. Seven ones are NaN.
CTXC_EACH_CPU void runF8E4M3(const uint8_t *from, int64_t count, float scale, float *to) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t magnitude = from[i] & 0x7f;
    float small = float(int32_t(magnitude)) * 0x1p-9f;
    uint32_t normal = (magnitude << 20) + (120u << 23), word;
    std::memcpy(&word, &small, sizeof word);
    word = magnitude < 8 ? word : normal;
    word = magnitude == 0x7f ? 0x7fc00000u : word;
    word |= uint32_t(from[i] & 0x80) << 24;
    float value;
    std::memcpy(&value, &word, sizeof value);
    to[i] = value * scale;
  }
}

/// Sign, two bits of exponent, one of fraction: 0, ½, 1, 1½, 2, 3, 4, 6. Twice the number is an
/// integer: the fraction where the exponent is 0, else 2 and the fraction, shifted.
inline float e2m1(uint32_t element) {
  int32_t exponent = element >> 1 & 3, fraction = element & 1;
  int32_t twice = exponent ? (2 + fraction) << (exponent - 1) : fraction;
  float magnitude = 0.5f * float(twice);
  return element & 8 ? -magnitude : magnitude;
}

/// A block: 32 elements in 16 bytes.
CTXC_EACH_CPU void blockMXFP4(const uint8_t *from, float scale, float *to) {
  for (int i = 0; i < 16; ++i) {
    to[2 * i] = e2m1(from[i] & 15) * scale;
    to[2 * i + 1] = e2m1(from[i] >> 4) * scale;
  }
}

} // namespace

void ctxc_decode_f8e4m3(const ctxc_scaled_matrix *m, int64_t first, int64_t count, float *to) {
  int64_t perRow = (m->columns + m->block_columns - 1) / m->block_columns;
  for (int64_t row = first / m->columns, column = first % m->columns; count > 0;) {
    int64_t block = column / m->block_columns;
    int64_t end = std::min((block + 1) * m->block_columns, m->columns);
    int64_t n = std::min(end - column, count);
    runF8E4M3(m->elements + row * m->columns + column, n,
              scaleAt(*m, row / m->block_rows * perRow + block), to);
    to += n;
    count -= n;
    column += n;
    if (column == m->columns)
      ++row, column = 0;
  }
}

const uint8_t *ctxc_scaled_row(const ctxc_scaled_matrix *m, int64_t row, int64_t row_bytes,
                               float *scales) {
  while (row >= m->rows)
    row -= m++->rows;
  if (m->block_columns % CTXC_SCALED_SPAN)
    return nullptr;
  int64_t perRow = (m->columns + m->block_columns - 1) / m->block_columns;
  int64_t scale = row / m->block_rows * perRow;
  for (int64_t column = 0; column < m->columns; column += m->block_columns, ++scale) {
    int64_t end = std::min(column + m->block_columns, m->columns);
    for (int64_t span = column; span < end; span += CTXC_SCALED_SPAN)
      *scales++ = scaleAt(*m, scale);
  }
  return m->elements + row * row_bytes;
}

// Rows have whole blocks, so blocks are numbered across rows.
void ctxc_decode_mxfp4(const ctxc_scaled_matrix *m, int64_t first, int64_t count, float *to) {
  for (int64_t i = first, end = first + count; i < end;) {
    float scale = scaleAt(*m, i / 32);
    if (i % 32 == 0 && end - i >= 32) {
      blockMXFP4(m->elements + i / 2, scale, to);
      i += 32;
      to += 32;
      continue;
    }
    *to++ = e2m1(m->elements[i / 2] >> (i % 2 ? 4 : 0) & 15) * scale;
    ++i;
  }
}
