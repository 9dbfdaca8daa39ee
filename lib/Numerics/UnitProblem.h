// The inner problems of UnitVectors.h on the processor.
#ifndef CTXC_LIB_NUMERICS_UNITPROBLEM_H
#define CTXC_LIB_NUMERICS_UNITPROBLEM_H

#include "ctxc/Numerics/Update.h"

namespace ctxc::detail {

/// All arrays have `size` entries, except `work`: 4·size for the solver's use.
struct UnitProblem {
  int64_t size;
  double *a, *M, *direction, *x, *work; ///< as of unit_solvers::UnitVectors
};

/// The update's inner problem; not of Update::Naive, which has none.
void solve(Update update, const UnitProblem &problem);

/// Sum in a fixed order, four lanes wide: the same on every machine.
double sum(const double *values, int64_t size);

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_UNITPROBLEM_H
