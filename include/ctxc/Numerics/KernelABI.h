/*===- KernelABI.h - what generated kernels call ----------------------------===*
 *
 * The C functions that a generated kernel calls to patch a post-norm's scale; see
 * NormInversion.h for the mathematics. Plain C, no allocation, no state: any
 * number of threads may call them with scratch of their own.
 *
 * `update` is the place of an update in Updates.def, from 0 on; any other value acts
 * as naive. Vectors have d float32 entries; the arithmetic is float64. Outputs must
 * not overlap inputs.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_KERNELABI_H
#define CTXC_NUMERICS_KERNELABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* target: what W_down h must become, where g is the required branch output, m the
 * effective scale, data the reduced run's W_down h. scratch: 8 d + 64 doubles
 * (ctxc::scratchDoubles). */
void ctxc_invert_rms_norm(int32_t update, int64_t d, float eps, const float *g, const float *m,
                          const float *data, float *target, double *scratch);

/* delta: the change of the scale, (m + delta) n = g, where n is the normalised
 * value that the kernel computed from the patched W_down's own output. Adds to
 * counts[0] the harmless and to counts[1] the harmful components (ScaleCounts);
 * the caller zeroes them. scratch as above. */
void ctxc_solve_scale(int32_t update, int64_t d, const float *g, const float *m, const float *n,
                      float *delta, int64_t *counts, double *scratch);

/* The two above for `rows` vectors, one after the other in memory, and one m. */
void ctxc_rows_invert_rms_norm(int32_t update, int64_t rows, int64_t d, float eps, const float *g,
                               const float *m, const float *data, float *target, double *scratch);
void ctxc_rows_solve_scale(int32_t update, int64_t rows, int64_t d, const float *g, const float *m,
                           const float *n, float *delta, int64_t *counts, double *scratch);

/* An obligation: adds to counts[1], for each of `rows` vectors of n entries, its
 * number of zero entries (elements != 0), or 1 if its length's square is 0 in float32. */
void ctxc_rows_count_zeros(int32_t elements, int64_t rows, int64_t n, const float *data,
                           int64_t *counts);

/* An obligation on vectors by which a change is made. Among `vectors` vectors of n entries, counts
 * the zero vectors: adds to counts[1] the number whose change, of m entries, is not zero, and to
 * counts[0] the number of the others. */
void ctxc_rows_count_unserved(int64_t vectors, int64_t n, int64_t m, const float *data,
                              const float *change, int64_t *counts);

/* An obligation on selections: adds to counts[1] the number of entries, of rows times n, in
 * which a and b differ. */
void ctxc_rows_count_different(int64_t rows, int64_t n, const int32_t *a, const int32_t *b,
                               int64_t *counts);

/* The predicted replay error of a block's output (ReplayError.h) for the last of
 * `rows` vectors: for a patched scale m + delta after a norm of target (from
 * data), and for y = product + u (v z). A plain change has k = 0. */
void ctxc_rows_predict_scale_replay(int64_t rows, int64_t d, float eps, const float *m,
                                    const float *delta, const float *target, const float *data,
                                    double *error);
void ctxc_rows_predict_rank1_replay(int64_t rows, int64_t n, int64_t k, const float *product,
                                    const float *u, const float *v, const float *z, double *error);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_KERNELABI_H */
