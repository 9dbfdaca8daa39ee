/*===- ScaledFormats.h - quantised matrices with separate scales -------------===*
 *
 * Matrices that are stored in two tensors: elements of a few bits, and a scale for each block of
 * them. These are fp8, as in DeepSeek-V3's checkpoints (e4m3, at most 448; blocks of rows and
 * columns), and mxfp4, as in gpt-oss's (e2m1, two in each byte, the first in the low half; 32
 * elements of a row share a power of two).
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_SCALEDFORMATS_H
#define CTXC_NUMERICS_SCALEDFORMATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ctxc_scale_type {
  CTXC_SCALE_F32,
  CTXC_SCALE_BF16,
  CTXC_SCALE_E8M0 /* 2^(byte - 127); 255 is NaN */
};

/* One matrix: where its two tensors are, in any alignment, and how they go together. The element
 * in row i and column j has the scale in row i / block_rows and column j / block_columns of the
 * matrix of scales, which has ceil(columns / block_columns) columns. */
typedef struct ctxc_scaled_matrix {
  const uint8_t *elements;
  const uint8_t *scales;
  int64_t rows, columns;
  int64_t block_rows, block_columns;
  int32_t scale_type;
} ctxc_scaled_matrix;

/* Decodes `count` numbers of `matrix` from number `first` on, in row-major order, into `to`: each
 * element times its scale, in float32. NaN where an element or its scale is NaN. mxfp4 takes blocks
 * of 1 × 32. Plain C, no state. */
void ctxc_decode_f8e4m3(const ctxc_scaled_matrix *matrix, int64_t first, int64_t count, float *to);
void ctxc_decode_mxfp4(const ctxc_scaled_matrix *matrix, int64_t first, int64_t count, float *to);

/* How many columns share a scale in the result of ctxc_scaled_row. */
#define CTXC_SCALED_SPAN 32

/* The address of the elements of row `row` of the stacked matrices at `first`, which have
 * `row_bytes` bytes in each row; writes the scale of each CTXC_SCALED_SPAN columns to `scales`.
 * Null, and no scales, if the blocks' columns are not a multiple of CTXC_SCALED_SPAN. */
const uint8_t *ctxc_scaled_row(const ctxc_scaled_matrix *first, int64_t row, int64_t row_bytes,
                               float *scales);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_SCALEDFORMATS_H */
