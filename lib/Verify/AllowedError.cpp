#include "ctxc/Verify/AllowedError.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;

LayerObserver StreamSizes::observer(LayerObserver next) {
  return [this, next = std::move(next)](int64_t layer, llvm::ArrayRef<double> rows, int64_t count) {
    double square = 0;
    for (double x : rows)
      square += x * x;
    double &largest = norms[layer];
    largest = std::max(largest, std::sqrt(square));
    last = rows.size();
    if (next)
      next(layer, rows, count);
  };
}

void StreamSizes::clear() {
  norms.clear();
  last = 0;
}

double StreamSizes::norm(int64_t layer) const {
  auto found = norms.find(layer);
  return found == norms.end() ? 0 : found->second;
}

double ctxc::largestMagnitude(llvm::ArrayRef<double> logits) {
  double largest = 0;
  for (double logit : logits)
    if (std::isfinite(logit))
      largest = std::max(largest, std::fabs(logit));
  return largest;
}

double ctxc::allowedLinf(double largestLogit, llvm::ArrayRef<double> replayError,
                         const StreamSizes &sizes, const Roundoffs &roundoffs) {
  double relative = roundoffs.arithmetic, before = sizes.norm(-1);
  for (auto [layer, error] : llvm::enumerate(replayError)) {
    double own = sizes.norm(layer);
    before = std::max(before, own);
    relative += roundoffs.arithmetic * (own > 0 ? before / own : 1);
    if (error != 0) // else an output of zeros is off by a part of itself
      relative += error / own * (roundoffs.patch / float32UnitRoundoff);
  }
  return 2 * std::sqrt(double(std::max<int64_t>(sizes.width(), 1))) * largestLogit * relative;
}
