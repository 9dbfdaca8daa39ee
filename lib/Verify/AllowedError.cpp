#include "ctxc/Verify/AllowedError.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;

LayerObserver StreamSizes::observer(LayerObserver next) {
  norms.clear();
  last = 0;
  return [this, next = std::move(next)](int64_t layer, llvm::ArrayRef<double> rows, int64_t count) {
    double square = 0;
    for (double x : rows)
      square += x * x;
    norms[layer] = std::sqrt(square);
    last = rows.size();
    if (next)
      next(layer, rows, count);
  };
}

double StreamSizes::norm(int64_t layer) const {
  auto found = norms.find(layer);
  return found == norms.end() ? 0 : found->second;
}

double ctxc::allowedLinf(llvm::ArrayRef<double> fullLogits, llvm::ArrayRef<double> replayError,
                         const StreamSizes &sizes, const Roundoffs &roundoffs) {
  double largest = 0;
  for (double logit : fullLogits)
    if (std::isfinite(logit)) // a logit of −∞ excludes its token
      largest = std::max(largest, std::fabs(logit));
  double relative = roundoffs.arithmetic;
  for (auto [layer, error] : llvm::enumerate(replayError)) {
    relative += roundoffs.arithmetic;
    if (error == 0)
      continue; // an output of zeros cannot be off by a part of itself
    relative += error / sizes.norm(layer) * (roundoffs.patch / float32UnitRoundoff);
  }
  return 2 * std::sqrt(double(std::max<int64_t>(sizes.width(), 1))) * largest * relative;
}
