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
