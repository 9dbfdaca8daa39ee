//===- Update.h - the updates of a post-norm scale, and their types -------===//
//
// The plain types of NormInversion.h. They are in a separate header so that the solvers behind the
// kernels' ABI need not link LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_UPDATE_H
#define CTXC_NUMERICS_UPDATE_H

#include <cstdint>
#include <iterator>

namespace ctxc {

/// How a post-norm scale patch is split between W_down and m: the choice of
/// n = Norm(target). The values are part of the kernels' ABI (KernelABI.h).
enum class Update : int32_t {
#define CTXC_UPDATE(NAME, TEXT, HELP) NAME,
#include "ctxc/Numerics/Updates.def"
};

/// All of them, and the names that users write, in the order of their values.
constexpr Update allUpdates[] = {
#define CTXC_UPDATE(NAME, TEXT, HELP) Update::NAME,
#include "ctxc/Numerics/Updates.def"
};
constexpr const char *updateNames[] = {
#define CTXC_UPDATE(NAME, TEXT, HELP) #TEXT,
#include "ctxc/Numerics/Updates.def"
};
constexpr const char *stringifyUpdate(Update update) { return updateNames[int32_t(update)]; }

/// The update that a kernel calls by this number; naive if no update has it.
constexpr Update updateNumbered(int64_t number) {
  return number < 0 || number >= int64_t(std::size(allUpdates)) ? Update::Naive : Update(number);
}

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
