/*===- ByteVectors.h - vectors in eight bits, for products in integers --------===*
 *
 * A vector x is rounded in groups of 32 numbers, and each group has its own scale d:
 *
 *   d = max |x_i| / 127,   q_i = x_i / d rounded to the nearest integer (the even one of two)
 *
 * so that x_i ≈ d q_i is off by at most d / 2. A product with a row of a quantised matrix, whose
 * numbers are s w_i + m with an integer w_i for each group of 32 or 16, is then
 *
 *   Σ over groups of   s d · Σ w_i q_i  +  m d · Σ q_i
 *
 * where the inner sums are exact. llama.cpp multiplies in the same way; for the K formats, its
 * groups have 256 numbers.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_BYTEVECTORS_H
#define CTXC_NUMERICS_BYTEVECTORS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CTXC_BYTE_SPAN = 256, /* numbers of a vector that lie together */
  CTXC_BYTE_GROUP = 32  /* numbers that share d */
};

/* CTXC_BYTE_SPAN numbers of a vector, padded with zeros. Its size is an odd number of cache lines,
 * so that vectors do not compete for the same few sets of a cache. A piece is half a group; first
 * come the first halves of groups 0, 2, 4 and 6, then the second ones, then both of groups 1, 3, 5
 * and 7. A register of 512 bits then has four lanes of each of four groups. */
typedef struct ctxc_byte_span {
  int8_t numbers[256];      /* q */
  int8_t pieces[256];       /* the same, as pieces of 16 */
  float scales[8];          /* d of each group */
  float scaled_sums[8];     /* d Σ q, in float32 */
  int32_t negative_sums[8]; /* -Σ q */
  int32_t of_halves[16];    /* -Σ q of each half of a group */
  int32_t unused[8];
} ctxc_byte_span;

/* Rounds vectors `first` to `last` of `x`, which lie one after the other and have `width` float32
 * numbers each, into `to`: ⌈width / CTXC_BYTE_SPAN⌉ spans for each vector of x, vector 0's first.
 * The d of a group with a number that is not finite is not finite either. Plain C, no state; the
 * results are the same on every processor. */
void ctxc_round_to_bytes(const float *x, int64_t first, int64_t last, int64_t width,
                         ctxc_byte_span *to);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_BYTEVECTORS_H */
