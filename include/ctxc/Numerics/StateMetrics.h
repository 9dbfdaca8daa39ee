//===- StateMetrics.h - how far apart two hidden states are -----------------===//
#ifndef CTXC_NUMERICS_STATEMETRICS_H
#define CTXC_NUMERICS_STATEMETRICS_H

#include "ctxc/Numerics/Metrics.h"

namespace ctxc {

/// (p · q) / (‖p‖ ‖q‖); 1 for two vectors of zeros.
double cosineOf(llvm::ArrayRef<double> p, llvm::ArrayRef<double> q);

/// How far `other` is from `baseline`: L∞. `match` says that all numbers are finite; there are no
/// tokens, and what a softmax would give is not set.
TokenMetrics compareStates(llvm::ArrayRef<double> baseline, llvm::ArrayRef<double> other);

} // namespace ctxc

#endif // CTXC_NUMERICS_STATEMETRICS_H
