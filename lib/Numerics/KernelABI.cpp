#include "ctxc/Numerics/KernelABI.h"

#include "NormInversionCore.h"

using namespace ctxc;

static Update toUpdate(int32_t update) {
  constexpr int32_t last = static_cast<int32_t>(Update::Scaled);
  return update < 0 || update > last ? Update::Naive : static_cast<Update>(update);
}

void ctxc_invert_rms_norm(int32_t update, int64_t d, float eps, const float *g, const float *m,
                          const float *data, float *target, double *scratch) {
  detail::invertRmsNorm(toUpdate(update), d, eps, g, m, data, target, scratch);
}

void ctxc_solve_scale(int32_t update, int64_t d, const float *g, const float *m, const float *n,
                      float *delta, int64_t *counts, double *) {
  ScaleCounts found = detail::solveScale(toUpdate(update), d, g, m, n, delta);
  counts[0] += found.harmless;
  counts[1] += found.harmful;
}

void ctxc_rows_invert_rms_norm(int32_t update, int64_t rows, int64_t d, float eps, const float *g,
                               const float *m, const float *data, float *target,
                               double *scratch) {
  for (int64_t r = 0; r < rows; ++r)
    ctxc_invert_rms_norm(update, d, eps, g + r * d, m, data + r * d, target + r * d, scratch);
}

void ctxc_rows_solve_scale(int32_t update, int64_t rows, int64_t d, const float *g, const float *m,
                           const float *n, float *delta, int64_t *counts, double *scratch) {
  for (int64_t r = 0; r < rows; ++r)
    ctxc_solve_scale(update, d, g + r * d, m, n + r * d, delta + r * d, counts, scratch);
}

void ctxc_rows_count_zeros(int32_t elements, int64_t rows, int64_t n, const float *data,
                           int64_t *counts) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; ++i)
      zeros += data[r * n + i] == 0;
    counts[1] += elements ? zeros : zeros == n;
  }
}
