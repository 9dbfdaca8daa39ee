#include "lib/Runtime/Logits.h"
#include "ctxc/Support/Error.h"
#include <cfloat>
#include <cmath>

using namespace ctxc;
using llvm::ArrayRef;

namespace {

struct Extremes {
  float largest;
  bool isFinite;
};

} // namespace

/// A loop that compilers vectorise: no branch, and several maxima side by side.
static Extremes extremesOf(ArrayRef<float> numbers) {
  constexpr size_t width = 32;
  float largest[width];
  std::fill(largest, largest + width, -FLT_MAX);
  unsigned bad[width] = {};
  size_t whole = numbers.size() / width * width;
  auto see = [&](float x, size_t lane) {
    largest[lane] = x > largest[lane] ? x : largest[lane];
    bad[lane] |= !(std::fabs(x) <= FLT_MAX);
  };
  for (size_t i = 0; i < whole; i += width)
    for (size_t lane = 0; lane < width; ++lane)
      see(numbers[i + lane], lane);
  for (size_t i = whole; i < numbers.size(); ++i)
    see(numbers[i], 0);
  Extremes range{largest[0], bad[0] == 0};
  for (size_t lane = 1; lane < width; ++lane) {
    range.largest = std::max(range.largest, largest[lane]);
    range.isFinite &= bad[lane] == 0;
  }
  return range;
}

static llvm::Error notFinite(const llvm::Twine &what = "the logits") {
  return makeError(what + " are not finite; the weights or the patch are too large for float32");
}

llvm::Error ctxc::checkFinite(ArrayRef<float> logits) {
  return extremesOf(logits).isFinite ? llvm::Error::success() : notFinite();
}

llvm::Error ctxc::checkFiniteRow(ArrayRef<float> value, int64_t row, int64_t rows,
                                 int64_t position) {
  const size_t width = value.size() / rows;
  return extremesOf(value.slice(row * width, width)).isFinite
             ? llvm::Error::success()
             : notFinite("the numbers at position " + llvm::Twine(position));
}

llvm::Expected<Logits> ctxc::finiteLogits(ArrayRef<float> logits) {
  if (llvm::Error error = checkFinite(logits))
    return std::move(error);
  return Logits(std::vector<float>(logits.begin(), logits.end()));
}

llvm::Expected<int64_t> ctxc::largestLogit(ArrayRef<float> logits) {
  Extremes range = extremesOf(logits);
  if (!range.isFinite)
    return notFinite();
  return llvm::find(logits, range.largest) - logits.begin();
}
