// Products of float64 matrices. Some columns of the right operand are copied to panels, which the
// loop reads in order; each of their numbers is multiplied with eight rows of the left operand.
#ifndef CTXC_LIB_NUMERICS_DOUBLEPANELS_H
#define CTXC_LIB_NUMERICS_DOUBLEPANELS_H

#include "RunHere.h"
#include <algorithm>
#include <cstdint>
#include <vector>

namespace ctxc::detail {

using Doubles = double __attribute__((vector_size(64)));

/// What becomes of a matrix by a product: the product, itself plus the product, or itself less it.
enum class Onto { Zero, Plus, Minus };

/// The k × n right operand of products.
class DoublePanels {
public:
  /// Its number (p, j) is `from[p * stride + j]`, or if it is transposed, `from[j * stride + p]`.
  template <typename T>
  DoublePanels(const T *from, int64_t k, int64_t n, int64_t stride, bool isTransposed)
      : k(k), n(n), numbers((n + width - 1) / width * width * k) {
    for (int64_t column = 0; column < n; column += width)
      fill(from, column, stride, isTransposed);
  }

  /// The product of a (m × k) and this, onto c (m × n). The operands must not overlap.
  template <Onto onto>
  void multiply(const double *a, int64_t m, int64_t strideA, double *c, int64_t strideC) const {
    runHere([&] {
      stretch<onto>(a, m, strideA, 0, c, strideC);
      for (int64_t begin = depth; begin < k; begin += depth)
        stretch<onto == Onto::Zero ? Onto::Plus : onto>(a, m, strideA, begin, c, strideC);
    });
  }

private:
  static constexpr int64_t lanes = 8, vectors = 3, width = lanes * vectors; ///< of a panel
  static constexpr int64_t height = 8;  ///< rows in registers together
  static constexpr int64_t depth = 256; ///< of k, so that these rows stay in the cache

  template <typename T> void fill(const T *from, int64_t column, int64_t stride, bool isTransposed);
  template <Onto onto>
  [[gnu::always_inline]] inline void stretch(const double *a, int64_t m, int64_t strideA,
                                             int64_t begin, double *c, int64_t strideC) const {
    for (int64_t row = 0; row < m; row += height)
      for (int64_t column = 0; column < n; column += width)
        tile<onto>(a + row * strideA, std::min(height, m - row), strideA, begin, column,
                   c + row * strideC + column, strideC);
  }
  template <Onto onto>
  [[gnu::always_inline]] inline void tile(const double *a, int64_t rows, int64_t strideA,
                                          int64_t begin, int64_t column, double *c,
                                          int64_t strideC) const;

  int64_t k, n;
  std::vector<double> numbers; ///< panel by panel, each k × width, and zeros beyond n
};

template <typename T>
void DoublePanels::fill(const T *from, int64_t column, int64_t stride, bool isTransposed) {
  const int64_t columns = std::min(width, n - column);
  double *panel = numbers.data() + column * k;
  if (!isTransposed) {
    for (int64_t p = 0; p < k; ++p)
      std::copy_n(from + p * stride + column, columns, panel + p * width);
    return;
  }
  constexpr int64_t together = 8; // a cache line of each row
  for (int64_t begin = 0; begin < k; begin += together)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t p = begin, end = std::min(begin + together, k); p < end; ++p)
        panel[p * width + j] = from[(column + j) * stride + p];
}

/// The sums of one stretch of k, in the order of k.
template <Onto onto>
inline void DoublePanels::tile(const double *a, int64_t rows, int64_t strideA, int64_t begin,
                               int64_t column, double *c, int64_t strideC) const {
  const double *left[height];
  for (int64_t i = 0; i < height; ++i)
    left[i] = a + std::min(i, rows - 1) * strideA; // the last is repeated where there are fewer
  const double *panel = numbers.data() + column * k;
  Doubles sums[height][vectors] = {};
  for (int64_t p = begin, end = std::min(begin + depth, k); p < end; ++p) {
    Doubles x[vectors];
    for (int64_t v = 0; v < vectors; ++v)
      x[v] = load<Doubles>(panel + p * width + v * lanes);
    for (int64_t i = 0; i < height; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        sums[i][v] += left[i][p] * x[v];
  }
  const int64_t columns = std::min(width, n - column);
  for (int64_t i = 0; i < rows; ++i) {
    const auto *made = reinterpret_cast<const double *>(sums[i]);
    double *to = c + i * strideC;
    for (int64_t j = 0; j < columns; ++j)
      to[j] = onto == Onto::Zero ? made[j] : onto == Onto::Plus ? to[j] + made[j] : to[j] - made[j];
  }
}

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_DOUBLEPANELS_H
