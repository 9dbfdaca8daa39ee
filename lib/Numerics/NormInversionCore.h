//===- NormInversionCore.h - both element types of NormInversion.h --------===//
//
// Instantiated for float (the kernels' ABI) and double.
// Needs nothing of LLVM, so that kernels compiled ahead of time need not either.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_NUMERICS_NORMINVERSIONCORE_H
#define CTXC_LIB_NUMERICS_NORMINVERSIONCORE_H

#include "ctxc/Numerics/Update.h"

namespace ctxc::detail {

template <typename T>
void invertRmsNorm(Update update, int64_t d, double eps, const T *g, const T *m, const T *data,
                   T *target, double *scratch);

template <typename T>
ScaleCounts solveScale(Update update, int64_t d, const T *g, const T *m, const T *n, T *delta);

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_NORMINVERSIONCORE_H
