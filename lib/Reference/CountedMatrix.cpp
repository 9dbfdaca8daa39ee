#include "CountedMatrix.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace ctxc::reference;

/// SplitMix64's output for a state.
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t ctxc::reference::counterOf(uint64_t counter, uint64_t index) {
  return mix(counter + (index + 1) * 0x9e3779b97f4a7c15u);
}

/// Enough for each row and, where there are fewer rows than columns, for each column.
static constexpr int64_t least = 16;

CountedMatrix::CountedMatrix(uint64_t counter, int64_t rows, int64_t columns)
    : counter(counter), rows(rows), columns(columns) {
  each = std::min(columns, least * std::max<int64_t>(1, llvm::divideCeil(columns, rows)));
  size = std::sqrt(12.0 / double(each)); // of numbers from −½ to ½, whose variance is 1/12
}

int64_t CountedMatrix::start(int64_t row) const {
  if (rows >= columns)
    return row % columns;
  return int64_t(__int128(row) * columns / rows);
}

double CountedMatrix::number(int64_t row, int64_t i) const {
  uint64_t bits = counterOf(counter, uint64_t(row) * uint64_t(each) + uint64_t(i));
  return size * (double((bits >> 11) + 1) * 0x1p-53 - 0.5);
}

void CountedMatrix::read(int64_t row, int64_t first, llvm::MutableArrayRef<double> to) const {
  std::fill(to.begin(), to.end(), 0.0);
  for (int64_t i = 0; i < each; ++i)
    if (int64_t at = column(row, i) - first; at >= 0 && at < int64_t(to.size()))
      to[at] = number(row, i);
}
