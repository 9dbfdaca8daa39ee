//===- ReplayError.h - the error of a patch in another program ------------===//
//
// Inside one process every patch looks exact: the patched run repeats the
// roundings that the patch was fitted to. Another program sums in another order
// and adds the patch to the weights first. These two functions predict the block's output
// error there, as a 2-norm, from what is known when the patch is made. They are
// first-order models of independent roundings: right within a small factor, and
// meant for comparing layers and updates. Layers above amplify further.
//
// `unitRoundoff` is that of the arithmetic and storage: 2⁻²⁴ for float32, 2⁻⁸
// for bfloat16.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_REPLAYERROR_H
#define CTXC_NUMERICS_REPLAYERROR_H

#include "llvm/ADT/ArrayRef.h"

namespace ctxc {

constexpr double float32UnitRoundoff = 0x1p-24;
constexpr double bfloat16UnitRoundoff = 0x1p-8;

/// For y = v + m' ⊙ Norm(target), target = (W_down + u vᵀ) h, all of d entries:
///
///   u √( Σ m'_k² ( n_k² + (RMS(data)² + (target_k − data_k)²) / (RMS(target)² + ε) ) )
///
/// with n = Norm(target). n_k² is the rounding of m' and of the product; the
/// fraction is the rounding of n_k in units of n: a row of W_down sums terms
/// whose rounding is as large as the other rows', however small its own result,
/// and the patch's part of it cancels against the rest. So ‖m'‖ is decisive.
double predictedScaleReplayError(llvm::ArrayRef<double> patchedScale, llvm::ArrayRef<double> target,
                                 llvm::ArrayRef<double> data, double eps,
                                 double unitRoundoff = float32UnitRoundoff);

/// For y = W z + u (vᵀ z): unitRoundoff · (‖W z‖ + ‖u‖ |vᵀ z|). `product` is W z,
/// `u` the patch's left factor, of as many entries; `inner` is vᵀ z.
double predictedRank1ReplayError(llvm::ArrayRef<double> product, llvm::ArrayRef<double> u,
                                 double inner, double unitRoundoff = float32UnitRoundoff);

} // namespace ctxc

#endif // CTXC_NUMERICS_REPLAYERROR_H
