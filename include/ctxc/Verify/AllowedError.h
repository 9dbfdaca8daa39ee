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

/// Watches runs of one token: how large each layer's output is, in the run where it is larger.
class StreamSizes {
public:
  /// Also calls `next`, where that is set. This object must outlive the observer.
  LayerObserver observer(LayerObserver next);

  /// ‖x_l‖ of the layer's output, or −1's, the embedding; 0 where it was not seen.
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
/// M_l is ‖x_l‖, or more where a layer's output is a small difference of what it reads, whose
/// roundings remain. `largestLogit` and the norms are of both runs: of what is zero in exact
/// arithmetic, roundings may leave something in either alone. `replayError` has an entry for each
/// layer, predicted for float32. Infinite where an error is.
double allowedLinf(double largestLogit, llvm::ArrayRef<double> replayError,
                   const StreamSizes &sizes, const Roundoffs &roundoffs);

} // namespace ctxc

#endif // CTXC_VERIFY_ALLOWEDERROR_H
