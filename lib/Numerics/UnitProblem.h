//===- UnitProblem.h - the inner problems in units without scale ----------===//
//
// Every inner problem of NormInversion.h depends on magnitudes only, and after
// scaling on the unit sphere only: with B = d ρ, n = √B x,
//
//   a_k = |g_k| / √B,  M_k = |m_k|,  both times one common factor so that the
//   largest of all is 1;  find x ≥ 0 with Σ x² = 1.
//
// NormInversion.cpp makes the problem and puts signs and units back.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_NUMERICS_UNITPROBLEM_H
#define CTXC_LIB_NUMERICS_UNITPROBLEM_H

#include <cstdint>

namespace ctxc::detail {

/// All arrays have `size` entries, except `work`: 4·size for the solver's use.
struct UnitProblem {
  int64_t size;
  const double *a;         ///< |g|, at least one entry positive
  const double *M;         ///< |m|
  const double *direction; ///< |data| / ‖data‖: where to put what is left over
  double *x;               ///< result
  double *work;
};

/// min Σ (a/x − M)², where a_k = x_k = 0 costs nothing.
void solveLeast(const UnitProblem &problem);

/// min Σ (M x − a)².
void solveStable(const UnitProblem &problem);

/// min Σ (a/x)²: x² = a / Σ a.
void solveBalanced(const UnitProblem &problem);

/// x ∝ a/M where M > 0; x = direction elsewhere.
void solveScaled(const UnitProblem &problem);

/// Sum in a fixed order, four lanes wide: the same on every machine.
double sum(const double *values, int64_t size);

/// Scales x to Σ x² = 1; a zero x becomes `direction`.
void normalizeResult(const UnitProblem &problem);

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_UNITPROBLEM_H
