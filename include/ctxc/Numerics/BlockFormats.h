/*===- BlockFormats.h - quantised rows, decoded ------------------------------===*
 *
 * How the formats of ctxc/Support/BlockFormats.def store numbers. GGUF's formats are as ggml
 * defines them: a number is d q, d q + m or d (q - zero), where q is an integer of a few bits and
 * d and m belong to the block; the K formats scale them by an integer for each 32 or 16 elements.
 * The other formats are those of ScaledFormats.h.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_BLOCKFORMATS_H
#define CTXC_NUMERICS_BLOCKFORMATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decodes `count` numbers of format `format` (its place in BlockFormats.def) from number `first`
 * on, in row-major order, into `to`. `stored` is the address of the blocks; for a format whose
 * scales are stored separately, its ctxc_scaled_matrix, or an array of them, stacked. In block
 * formats `first` and `count` are multiples of the block's size. A number is the format's formula
 * evaluated in float32 in its own order, so that all decoders agree. Plain C, no state. */
void ctxc_decode(int32_t format, const void *stored, int64_t first, int64_t count, float *to);

/* Decodes rows indices[0], …, indices[rows - 1] of a table with rows of `width` numbers, one after
 * the other, into `to`. */
void ctxc_decode_rows(int32_t format, int64_t rows, int64_t width, const void *table,
                      const int32_t *indices, float *to);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_BLOCKFORMATS_H */
