//===- AllowedError.h - how far apart two runs' logits may be --------------===//
//
// A patch is exact in exact arithmetic. What rounding makes of that is predicted when the patch is
// made, layer by layer (Numerics/ReplayError.h); here it is carried on to the logits, so that a
// verification can tell a rounding from a mistake (docs/updates.md#what-verify-allows).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_ALLOWEDERROR_H
#define CTXC_VERIFY_ALLOWEDERROR_H

#include "ctxc/Numerics/ReplayError.h"
#include "ctxc/Program/Executor.h"
#include <map>

namespace ctxc {

constexpr double float16UnitRoundoff = 0x1p-11;

/// The coarsest roundings in which two runs differ.
struct Roundoffs {
  double arithmetic = float32UnitRoundoff; ///< of what is computed
  double patch = float32UnitRoundoff;      ///< of what a patch is applied to, and of itself
};

/// Watches a run of one token: how large each layer's output is.
class StreamSizes {
public:
  /// Also calls `next`, where that is set. This object must outlive the observer.
  LayerObserver observer(LayerObserver next);

  /// ‖x_l‖ of the layer's output; 0 where it was not seen.
  double norm(int64_t layer) const;
  /// How many numbers the last layer's output has.
  int64_t width() const { return last; }

private:
  std::map<int64_t, double> norms;
  int64_t last = 0;
};

/// L∞ that the roundings of a patched run allow. With the layers' predicted errors e_l, their
/// outputs' norms ‖x_l‖, the width d of the last, the arithmetic's unit roundoff u and the patch's
/// p:
///
///   2 √d · max |logit| · ( u + Σ_l ( u + (p / 2⁻²⁴) e_l / ‖x_l‖ ) )
///
/// `replayError` has an entry for each layer, predicted for float32. Infinite where an error is.
double allowedLinf(llvm::ArrayRef<double> fullLogits, llvm::ArrayRef<double> replayError,
                   const StreamSizes &sizes, const Roundoffs &roundoffs);

} // namespace ctxc

#endif // CTXC_VERIFY_ALLOWEDERROR_H
