//===- Update.h - the updates of a post-norm scale, and their types -------===//
//
// The plain types of NormInversion.h. They are in a separate header so that the solvers behind the
// kernels' ABI need not link LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_UPDATE_H
#define CTXC_NUMERICS_UPDATE_H

#include <cstdint>

namespace ctxc {

/// How a post-norm scale patch is split between W_down and m: the choice of
/// n = Norm(target). The values are part of the kernels' ABI (KernelABI.h).
enum class Update : int32_t {
  Least = 0,    ///< smallest ‖Δm‖: min Σ (|g|/n − |m|)²; the default
  Balanced = 1, ///< smallest ‖m + Δm‖: n² = ρ |g| / mean|g|
  Naive = 2,    ///< W_down stays: n = Norm(data) (paper, Theorem 1)
  Stable = 3,   ///< min ‖m ⊙ n − g‖ (paper, appendix "Numerically Stable Update")
  Scaled = 4,   ///< n ∝ g ⊘ m, and one scalar on m (paper, "Scaling Update Variant")
};

/// Doubles of scratch that invertRmsNorm needs for vectors of d entries; the
/// compiler adds 8·(8 d + 64) bytes to the workspace of a kernel that inverts.
constexpr int64_t scratchDoubles(int64_t d) { return 8 * d + 64; }

/// Components whose divisor is zero.
struct ScaleCounts {
  /// g_k = 0 and n_k = 0 (to rounding: |n_k| ≤ 16 u RMS(n)): Δm_k = 0 is exact.
  int64_t harmless = 0;
  /// g_k ≠ 0 and n_k = 0, or a quotient out of range: divided by 1 as the paper
  /// does, so the patch is not exact there. scaled: g_k ≠ 0 and m_k n_k = 0.
  int64_t harmful = 0;
};

} // namespace ctxc

#endif // CTXC_NUMERICS_UPDATE_H
