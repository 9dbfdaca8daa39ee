#include "ctxc/Numerics/KernelABI.h"

#include "NormInversionCore.h"
#include "ctxc/Numerics/ReplayError.h"
#include <cmath>

using namespace ctxc;

void ctxc_invert_rms_norm(int32_t update, int64_t d, float eps, const float *g, const float *m,
                          const float *data, float *target, double *scratch) {
  detail::invertRmsNorm(updateNumbered(update), d, eps, g, m, data, target, scratch);
}

void ctxc_solve_scale(int32_t update, int64_t d, const float *g, const float *m, const float *n,
                      float *delta, int64_t *counts, double *) {
  ScaleCounts found = detail::solveScale(updateNumbered(update), d, g, m, n, delta);
  counts[0] += found.harmless;
  counts[1] += found.harmful;
}

void ctxc_rows_invert_rms_norm(int32_t update, int64_t rows, int64_t d, float eps, const float *g,
                               const float *m, const float *data, float *target, double *scratch) {
  for (int64_t r = 0; r < rows; ++r)
    ctxc_invert_rms_norm(update, d, eps, g + r * d, m, data + r * d, target + r * d, scratch);
}

void ctxc_rows_solve_scale(int32_t update, int64_t rows, int64_t d, const float *g, const float *m,
                           const float *n, float *delta, int64_t *counts, double *scratch) {
  for (int64_t r = 0; r < rows; ++r)
    ctxc_solve_scale(update, d, g + r * d, m, n + r * d, delta + r * d, counts, scratch);
}

/// Whether ‖x‖², by which kernels divide, is 0: it underflows before the entries do.
static bool hasNoLength(const float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (x[i] * x[i] != 0)
      return false;
  return true;
}

void ctxc_rows_count_zeros(int32_t elements, int64_t rows, int64_t n, const float *data,
                           int64_t *counts) {
  for (int64_t r = 0; r < rows; ++r) {
    if (!elements) {
      counts[1] += hasNoLength(data + r * n, n);
      continue;
    }
    for (int64_t i = 0; i < n; ++i)
      counts[1] += data[r * n + i] == 0;
  }
}

static bool isZero(const float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (x[i] != 0)
      return false;
  return true;
}

void ctxc_rows_count_unserved(int64_t vectors, int64_t n, int64_t m, const float *data,
                              const float *change, int64_t *counts) {
  for (int64_t i = 0; i < vectors; ++i)
    if (hasNoLength(data + i * n, n))
      ++counts[isZero(change + i * m, m) ? 0 : 1];
}

void ctxc_rows_count_different(int64_t rows, int64_t n, const int32_t *a, const int32_t *b,
                               int64_t *counts) {
  for (int64_t i = 0; i < rows * n; ++i)
    counts[1] += a[i] != b[i];
}

void ctxc_rows_predict_scale_replay(int64_t rows, int64_t d, float eps, const float *m,
                                    const float *delta, const float *target, const float *data,
                                    double *error) {
  delta += (rows - 1) * d, target += (rows - 1) * d, data += (rows - 1) * d;
  double targetSquares = 0, dataSquares = 0;
  for (int64_t k = 0; k < d; ++k) {
    targetSquares += double(target[k]) * target[k];
    dataSquares += double(data[k]) * data[k];
  }
  double divisor = targetSquares / d + eps, sum = 0;
  if (divisor <= 0)
    divisor = 1;
  for (int64_t k = 0; k < d; ++k) {
    double scale = double(m[k]) + delta[k], moved = double(target[k]) - data[k];
    sum +=
        scale * scale * (double(target[k]) * target[k] + dataSquares / d + moved * moved) / divisor;
  }
  *error = ctxc::float32UnitRoundoff * std::sqrt(sum);
}

void ctxc_rows_predict_rank1_replay(int64_t rows, int64_t n, int64_t k, const float *product,
                                    const float *u, const float *v, const float *z, double *error) {
  product += (rows - 1) * n, u += (rows - 1) * n, v += (rows - 1) * k, z += (rows - 1) * k;
  double productSquares = 0, uSquares = 0, inner = k == 0;
  for (int64_t i = 0; i < n; ++i) {
    productSquares += double(product[i]) * product[i];
    uSquares += double(u[i]) * u[i];
  }
  for (int64_t i = 0; i < k; ++i)
    inner += double(v[i]) * z[i];
  *error = ctxc::float32UnitRoundoff *
           (std::sqrt(productSquares) + std::sqrt(uSquares) * std::abs(inner));
}
