#include "ctxc/Numerics/NormInversion.h"

#include "NormInversionCore.h"
#include <algorithm>
#include <cassert>
#include <cmath>

using namespace ctxc;

void ctxc::invertRmsNorm(Update update, llvm::ArrayRef<double> g, llvm::ArrayRef<double> m,
                         llvm::ArrayRef<double> data, double eps,
                         llvm::MutableArrayRef<double> target,
                         llvm::MutableArrayRef<double> scratch) {
  int64_t d = g.size();
  assert(m.size() == g.size() && data.size() == g.size() && target.size() == g.size() &&
         static_cast<int64_t>(scratch.size()) >= scratchDoubles(d) && "sizes differ");
  detail::invertRmsNorm(update, d, eps, g.data(), m.data(), data.data(), target.data(),
                        scratch.data());
}

ScaleCounts ctxc::solveScale(Update update, llvm::ArrayRef<double> g, llvm::ArrayRef<double> m,
                             llvm::ArrayRef<double> n, llvm::MutableArrayRef<double> delta) {
  assert(m.size() == g.size() && n.size() == g.size() && delta.size() == g.size() &&
         "sizes differ");
  return detail::solveScale(update, static_cast<int64_t>(g.size()), g.data(), m.data(), n.data(),
                            delta.data());
}

void ctxc::rmsNormalize(llvm::ArrayRef<double> x, double eps, llvm::MutableArrayRef<double> n) {
  assert(x.size() == n.size() && "sizes differ");
  // Squares of ratios to the largest entry: safe at any magnitude.
  double largest = 0, squares = 0;
  for (double value : x)
    largest = std::max(largest, std::fabs(value));
  for (double value : x)
    squares += largest > 0 ? (value / largest) * (value / largest) : 0;
  double rms = x.empty() ? 0 : largest * std::sqrt(squares / x.size());
  double divisor = std::hypot(rms, std::sqrt(std::max(eps, 0.0)));
  for (size_t k = 0; k < x.size(); ++k)
    n[k] = divisor > 0 ? x[k] / divisor : 0;
}
