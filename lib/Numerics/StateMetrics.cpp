#include "ctxc/Numerics/StateMetrics.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace ctxc;

double ctxc::cosineOf(llvm::ArrayRef<double> p, llvm::ArrayRef<double> q) {
  double product = 0, squaresOfP = 0, squaresOfQ = 0;
  for (auto [a, b] : llvm::zip(p, q)) {
    product += a * b;
    squaresOfP += a * a;
    squaresOfQ += b * b;
  }
  if (squaresOfP == 0 && squaresOfQ == 0)
    return 1;
  return product / std::sqrt(squaresOfP * squaresOfQ);
}

TokenMetrics ctxc::compareStates(llvm::ArrayRef<double> baseline, llvm::ArrayRef<double> other) {
  TokenMetrics metrics;
  metrics.finite = baseline.size() == other.size();
  for (auto [a, b] : llvm::zip(baseline, other)) {
    metrics.finite &= std::isfinite(a) && std::isfinite(b);
    metrics.linf = std::max(metrics.linf, std::fabs(a - b));
  }
  if (!metrics.finite)
    metrics.linf = std::numeric_limits<double>::infinity();
  metrics.match = metrics.finite;
  return metrics;
}
