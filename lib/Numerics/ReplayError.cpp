#include "ctxc/Numerics/ReplayError.h"

#include <cassert>
#include <cmath>
#include <limits>

using namespace ctxc;

/// ‖x‖ without overflow.
static double norm(llvm::ArrayRef<double> x) {
  double length = 0;
  for (double value : x)
    length = std::hypot(length, value);
  return length;
}

double ctxc::predictedScaleReplayError(llvm::ArrayRef<double> patchedScale,
                                       llvm::ArrayRef<double> target, llvm::ArrayRef<double> data,
                                       double eps, double unitRoundoff) {
  assert(target.size() == patchedScale.size() && data.size() == patchedScale.size() &&
         "sizes differ");
  double root = std::sqrt(static_cast<double>(patchedScale.size()));
  double spread = patchedScale.empty() ? 0 : norm(data) / root;
  double divisor = patchedScale.empty() ? 0 : std::hypot(norm(target) / root, std::sqrt(eps));
  double error = 0;
  for (size_t k = 0; k < patchedScale.size(); ++k) {
    double noise = std::hypot(spread, target[k] - data[k]);
    double rounding = std::hypot(target[k], noise);
    if (patchedScale[k] == 0 || rounding == 0)
      continue;
    if (divisor == 0) // the norm is of a zero vector
      return std::numeric_limits<double>::infinity();
    error = std::hypot(error, patchedScale[k] * (rounding / divisor));
  }
  return unitRoundoff * error;
}

double ctxc::predictedRank1ReplayError(llvm::ArrayRef<double> product, llvm::ArrayRef<double> u,
                                       double inner, double unitRoundoff) {
  assert(product.size() == u.size() && "sizes differ");
  return unitRoundoff * (norm(product) + norm(u) * std::fabs(inner));
}
