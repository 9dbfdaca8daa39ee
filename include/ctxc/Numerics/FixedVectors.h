/*===- FixedVectors.h - vectors in fixed point, for products in integers ------===*
 *
 * A vector x is rounded in blocks of 16 numbers, each with its own unit u, a power of two:
 *
 *   v_i = x_i / u rounded to the nearest integer,  |v_i| <= 127 (2^16 + 2^8 + 1),
 *   u <= 1.004 · 2^-22 max |x_i|,
 *
 * so that x_i = u v_i is off by at most u / 2 (where max |x_i| is below 2^-104, by 2^-127). These
 * are the 24 bits that the significand of a float32 has, for the largest numbers of a block; a sum
 * in float32 rounds to the last of them at each step behind such a number. v is written in three
 * digits,
 *
 *   v_i = 2^16 a_i + 2^8 b_i + c_i,  from -128 to 127 each,
 *
 * which are multiplied with the integers w of a quantised matrix as bytes. Eight products with
 * w <= 31, or with |w| <= 32, have a sum below 2^31.
 *
 * Each digit's bytes lie in four runs of 64, which a register of 512 bits holds. The first two have
 * the first 128 numbers: of each 16 the first run has the first eight, and the second the others.
 * So the same bytes of both belong to the same 16 numbers, which have one scale and one unit, and
 * products with the second run are added to those with the first before anything becomes float32.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_FIXEDVECTORS_H
#define CTXC_NUMERICS_FIXEDVECTORS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CTXC_FIXED_SPAN = 256, /* numbers of a vector that lie together */
  CTXC_FIXED_BLOCK = 16, /* numbers that share u */
  CTXC_FIXED_DIGITS = 3
};

/* CTXC_FIXED_SPAN numbers of a vector, padded with zeros. Its size is an odd number of cache lines,
 * so that vectors do not compete for the same few sets of a cache. */
typedef struct ctxc_fixed_span {
  int8_t digits[3][256];       /* a, b, c */
  int32_t negative_eights[32]; /* -Σ v of bytes 4 l to 4 l + 3 of two runs, l = 0 to 15, and of the
                                  others */
  float units[32];             /* u of the same numbers */
  float scaled_sums[8];        /* Σ u v of each 32 numbers */
  int32_t unused[8];
} ctxc_fixed_span;

/* Rounds vectors `first` to `last` of `x`, which lie one after the other and have `width` float32
 * numbers each, into `to`: ⌈width / CTXC_FIXED_SPAN⌉ spans for each vector of x, vector 0's first.
 * The unit of a block with a number that is not finite is not finite either, and its v are 0. Plain
 * C, no state; the results are the same on every processor. */
void ctxc_round_to_fixed(const float *x, int64_t first, int64_t last, int64_t width,
                         ctxc_fixed_span *to);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_FIXEDVECTORS_H */
