//===- AllowedError.h - how far apart two runs' logits may be --------------===//
//
// A patch is exact in exact arithmetic. The effect of rounding is predicted when the patch is made,
// layer by layer (Numerics/ReplayError.h); this file carries the prediction on to the logits, so
// that a verification can tell rounding from a mistake (docs/updates.md#what-verify-allows).
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
  double arithmetic = float32UnitRoundoff; ///< of the computed values
  double patch = float32UnitRoundoff;      ///< of the patch, and of what it is applied to
  double program = float32UnitRoundoff;    ///< of the program in which a patch is to run
};

/// Watches two runs of one token: how large each layer's output is, in the run where it is larger.
class StreamSizes {
public:
  /// Also calls `next`, where that is set. This object must outlive the observer.
  LayerObserver observer(LayerObserver next);

  /// ‖x_l‖ of the layer's output (layer −1 is the embedding); 0 if it was not seen.
  double norm(int64_t layer) const;
  /// How many numbers the last layer's output has.
  int64_t width() const { return last; }
  /// Forgets what was seen, before the runs of another token.
  void clear();

private:
  std::map<int64_t, double> norms;
  int64_t last = 0;
};

/// The largest |logit|. One of −∞, which excludes its token, does not count.
double largestMagnitude(llvm::ArrayRef<double> logits);

/// L∞ that the roundings of a patched run allow. With the layers' predicted errors e_l, their
/// outputs' norms ‖x_l‖, the largest norm M_l of what came up to layer l, the width d of the last
/// output, the arithmetic's unit roundoff u and the patch's p:
///
///   2 √d · max |logit| · ( u + Σ_l ( u M_l / ‖x_l‖ + (p / 2⁻²⁴) e_l / ‖x_l‖ ) )
///
/// M_l is ‖x_l‖, or more if a layer's output is a small difference of its inputs, whose roundings
/// remain. `largestLogit` and the norms are maxima over both runs, since rounding may make a value
/// that is zero in exact arithmetic nonzero in only one of them. `replayError` has an entry for
/// each layer, predicted for float32. The result is infinite if an entry is.
double allowedLinf(double largestLogit, llvm::ArrayRef<double> replayError,
                   const StreamSizes &sizes, const Roundoffs &roundoffs);

} // namespace ctxc

#endif // CTXC_VERIFY_ALLOWEDERROR_H
