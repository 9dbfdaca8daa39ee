#include "ctxc/Numerics/NormInversion.h"

#include "NormInversionCore.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>

using namespace ctxc;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

llvm::ArrayRef<Update> ctxc::allUpdates() {
  static constexpr Update all[] = {Update::Least, Update::Balanced, Update::Naive, Update::Stable,
                                   Update::Scaled};
  return all;
}

llvm::StringRef ctxc::stringifyUpdate(Update update) {
  switch (update) {
  case Update::Least:
    return "least";
  case Update::Balanced:
    return "balanced";
  case Update::Naive:
    return "naive";
  case Update::Stable:
    return "stable";
  case Update::Scaled:
    return "scaled";
  }
  return "unknown";
}

llvm::Expected<Update> ctxc::parseUpdate(llvm::StringRef name) {
  for (Update update : allUpdates())
    if (name == stringifyUpdate(update))
      return update;
  return makeError("update '" + name + "' is unknown; valid names: " +
                   llvm::join(llvm::map_range(allUpdates(), stringifyUpdate), ", "));
}

//===----------------------------------------------------------------------===//
// The two steps, and the norm between them
//===----------------------------------------------------------------------===//

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

static double rounded(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

void ctxc::rmsNormalize(llvm::ArrayRef<double> x, double eps, llvm::MutableArrayRef<double> n,
                        NormRounding rounding) {
  assert(x.size() == n.size() && "sizes differ");
  // Squares of ratios to the largest entry: safe at any magnitude.
  double largest = 0, squares = 0;
  for (double value : x)
    largest = std::max(largest, std::fabs(value));
  for (double value : x)
    squares += largest > 0 ? (value / largest) * (value / largest) : 0;
  double rms = x.empty() ? 0 : largest * std::sqrt(squares / x.size());
  double divisor = std::hypot(rms, std::sqrt(std::max(eps, 0.0)));
  for (size_t k = 0; k < x.size(); ++k) {
    double value = divisor > 0 ? x[k] / divisor : 0;
    switch (rounding) {
    case NormRounding::None:
      break;
    case NormRounding::Float32:
      value = static_cast<float>(value);
      break;
    case NormRounding::BFloat16:
      value = rounded(value, llvm::APFloat::BFloat());
      break;
    case NormRounding::Float16:
      value = rounded(value, llvm::APFloat::IEEEhalf());
      break;
    }
    n[k] = value;
  }
}
