/*===- BlockFormats.h - quantised rows, decoded ------------------------------===*
 *
 * The numbers behind GGUF's block formats (ctxc/Support/BlockFormats.def), as ggml
 * defines them: a number is d q, d q + m or d (q - zero) with q an integer of a few bits and
 * d, m the block's, which the K formats scale for each 32 or 16 elements by an integer.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_BLOCKFORMATS_H
#define CTXC_NUMERICS_BLOCKFORMATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `elements` numbers, a multiple of a block's, of format `format` (its place in
 * BlockFormats.def) from `from` into `to`. Each is what float32 arithmetic gives in the order
 * of the format's formula, so that a number does not depend on who decodes it. Plain C, no
 * state. */
void ctxc_decode_blocks(int32_t format, int64_t elements, const uint8_t *from, float *to);

/* Rows indices[0], …, indices[rows - 1] of a table with rows of `width` numbers, one after the
 * other into `to`. */
void ctxc_decode_rows(int32_t format, int64_t rows, int64_t width, const uint8_t *table,
                      const int32_t *indices, float *to);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_BLOCKFORMATS_H */
