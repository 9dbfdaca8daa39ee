// The inner problems of a post-norm's patch, written for a block of threads: what lib/Numerics
// (UnitProblem.h, and the solvers behind it) computes, in the same units, by the same iterations
// and in float64. Sums are taken in the block's order, so that results are the processor's up to
// the last digits of float64.
//
// Inputs are float32 and the largest entry of a and M is 1: no product here leaves float64's range.
#ifndef CTXC_LIB_LOWERING_GPU_NORMSOLVER_H
#define CTXC_LIB_LOWERING_GPU_NORMSOLVER_H

#include "lib/Lowering/GPU/VectorWriter.h"

namespace ctxc::gpu_lowering {

/// Find x ≥ 0 with Σ x² = 1, up to its length, which is set afterwards.
struct UnitVectors {
  Components a;         ///< |g|
  Components M;         ///< |m|
  Components direction; ///< |data| / ‖data‖
  Components x;         ///< the result
  Components work[4];   ///< for the solver
};

/// min Σ (a/x − M)², where a_k = x_k = 0 costs nothing.
void writeLeast(VectorWriter &v, const UnitVectors &p);
/// min Σ (M x − a)².
void writeStable(VectorWriter &v, const UnitVectors &p);
/// min Σ (a/x)²: x² = a / Σ a.
void writeBalanced(VectorWriter &v, const UnitVectors &p);
/// x ∝ a/M where M > 0; x = direction elsewhere.
void writeScaled(VectorWriter &v, const UnitVectors &p);

/// Component k's part of what goes to `count` components, of which the data has `present` = Σ
/// direction²: in proportion to its own, or in equal parts where it has nothing there.
Number shareOf(VectorWriter &v, const UnitVectors &p, mlir::Value k, const Number &present,
               const Number &count);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_NORMSOLVER_H
