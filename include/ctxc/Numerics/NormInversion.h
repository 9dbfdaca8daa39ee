//===- NormInversion.h - patching through a norm and the scale after it ---===//
//
// A block that ends in a post-norm computes
//
//   y = v + m ⊙ Norm(data),  data = W_down h,  Norm(x) = x / √(mean(x²) + ε).
//
// Its patch moves W_down by one rank-1 term, so that the norm reads a chosen
// vector `target`, and the scale m by Δm, which absorbs what the norm's bounded
// image cannot reach. With g = T_C − v, the required branch output, there are two steps:
//
//   1. invertRmsNorm chooses target (the *inner problem*, one for each Update);
//   2. the patched W_down is run, its actual output is normalised to n', and
//      solveScale solves (m + Δm) ⊙ n' = g, rounding included.
//
// With ε > 0 the image of Norm is the open ball mean(n²) < 1. Every update but
// naive keeps RMS(target) = RMS(data) =: R, so mean(n²) = ρ = R²/(R² + ε) and
// target = n √(R² + ε). Without ρ a run that needs no patch would get one.
//
// The arithmetic is float64 and takes O(d) per iteration, with a bounded number of
// iterations, without allocation or locks. Finite input gives finite output.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_NORMINVERSION_H
#define CTXC_NUMERICS_NORMINVERSION_H

#include "ctxc/Numerics/Update.h"
#include "llvm/ADT/ArrayRef.h"

namespace ctxc {

/// Step 1. All vectors have d entries: `g` is the required branch output, `m` the
/// effective scale (for Gemma 1 + w), `data` the reduced
/// run's W_down h, `eps` ≥ 0. Writes `target`; scratch: scratchDoubles(d).
///
/// Signs: n_k has the sign of g_k m_k, so that m keeps its own, or the sign of data_k
/// where the product is zero. g = 0, and data or g or m that are not finite,
/// give target = data. data = 0 has no RMS to keep: R = 1 is used.
/// scaled: where m_k = 0, target_k = data_k, since g ⊘ m is undefined there.
void invertRmsNorm(Update update, llvm::ArrayRef<double> g, llvm::ArrayRef<double> m,
                   llvm::ArrayRef<double> data, double eps, llvm::MutableArrayRef<double> target,
                   llvm::MutableArrayRef<double> scratch);

/// n = Norm(x); x and n may be the same memory.
void rmsNormalize(llvm::ArrayRef<double> x, double eps, llvm::MutableArrayRef<double> n);

/// Step 2. Δm with (m + Δm) ⊙ n = g, where n is the normalised value of the patched
/// run. scaled: Δm = (s − 1) m with s the least-squares fit of s m ⊙ n to g.
ScaleCounts solveScale(Update update, llvm::ArrayRef<double> g, llvm::ArrayRef<double> m,
                       llvm::ArrayRef<double> n, llvm::MutableArrayRef<double> delta);

} // namespace ctxc

#endif // CTXC_NUMERICS_NORMINVERSION_H
