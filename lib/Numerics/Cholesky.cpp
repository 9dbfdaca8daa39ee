// Cholesky's decomposition by blocks. Blocks on the diagonal are small, and their inverses take the
// place of solving: so nearly everything is a product.
#include "DoublePanels.h"
#include "ctxc/Numerics/Dense.h"
#include <cmath>

using namespace ctxc;
using detail::DoublePanels, detail::Onto, detail::runHere;

namespace {

constexpr int64_t blockRows = 64;
/// Rows that one thread takes together, so that a panel serves many.
constexpr int64_t rowsTogether = 64;

/// A block's numbers, or those of its inverse, in rows of blockRows.
struct Block {
  double at[blockRows][blockRows] = {};
  int64_t size = 0;
};

template <typename Body> void overRows(int64_t rows, ParallelRanges parallel, Body body) {
  parallel((rows + rowsTogether - 1) / rowsTogether, [&](int64_t begin, int64_t end) {
    body(begin * rowsTogether, std::min(rows, end * rowsTogether));
  });
}

/// Replaces the block, of which the lower triangle is read, by its factor L, and Lᵀ above the
/// diagonal.
bool factorBlock(double *a, int64_t stride, int64_t size) {
  Block upper;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j)
      upper.at[j][i] = a[i * stride + j];
  for (int64_t j = 0; j < size; ++j) {
    const double pivot = upper.at[j][j];
    if (!(pivot > 0) || !std::isfinite(pivot))
      return false;
    const double root = std::sqrt(pivot);
    runHere([&] {
      double *row = upper.at[j];
      for (int64_t p = j; p < size; ++p)
        row[p] /= root;
      for (int64_t i = j + 1; i < size; ++i)
        for (int64_t p = i; p < size; ++p)
          upper.at[i][p] -= row[i] * row[p];
    });
  }
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j)
      a[i * stride + j] = a[j * stride + i] = upper.at[j][i];
  return true;
}

/// The inverse of a block's factor.
void invertBlock(const double *factor, int64_t stride, int64_t size, Block &inverse) {
  inverse.size = size;
  runHere([&] {
    for (int64_t i = 0; i < size; ++i) {
      double *row = inverse.at[i];
      row[i] = 1;
      for (int64_t p = 0; p < i; ++p)
        for (int64_t j = 0; j <= p; ++j)
          row[j] -= factor[i * stride + p] * inverse.at[p][j];
      for (int64_t j = 0; j <= i; ++j)
        row[j] /= factor[i * stride + i];
    }
  });
}

/// Each row x becomes x Bᵀ, or x B, for the block B.
void multiplyRows(const Block &block, bool isTransposed, double *rows, int64_t count,
                  int64_t stride) {
  DoublePanels panels(block.at[0], block.size, block.size, blockRows, isTransposed);
  double copy[8 * blockRows];
  for (int64_t row = 0; row < count; row += 8) {
    const int64_t some = std::min<int64_t>(8, count - row);
    double *from = rows + row * stride;
    for (int64_t i = 0; i < some; ++i)
      std::copy_n(from + i * stride, block.size, copy + i * blockRows);
    panels.multiply<Onto::Zero>(copy, some, blockRows, from, stride);
  }
}

} // namespace

bool ctxc::factorCholesky(double *a, int64_t n, ParallelRanges parallel) {
  for (int64_t from = 0; from < n; from += blockRows) {
    const int64_t size = std::min(blockRows, n - from);
    double *left = a + from * n, *diagonal = left + from;
    // The block's columns, less what the columns before them explain.
    DoublePanels known(left, from, size, n, /*isTransposed=*/true);
    overRows(n - from, parallel, [&](int64_t begin, int64_t end) {
      known.multiply<Onto::Minus>(left + begin * n, end - begin, n, diagonal + begin * n, n);
    });
    if (!factorBlock(diagonal, n, size))
      return false;
    Block inverse;
    invertBlock(diagonal, n, size, inverse);
    double *below = diagonal + size * n;
    overRows(n - from - size, parallel, [&](int64_t begin, int64_t end) {
      multiplyRows(inverse, /*isTransposed=*/true, below + begin * n, end - begin, n);
    });
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j)
      a[j * n + i] = a[i * n + j];
  return true;
}

void ctxc::solveCholesky(const double *factor, int64_t n, double *rows, int64_t count,
                         ParallelRanges parallel) {
  std::vector<Block> inverses((n + blockRows - 1) / blockRows);
  for (size_t i = 0; i < inverses.size(); ++i) {
    const int64_t from = i * blockRows;
    invertBlock(factor + from * n + from, n, std::min(blockRows, n - from), inverses[i]);
  }
  overRows(count, parallel, [&](int64_t begin, int64_t end) {
    double *mine = rows + begin * n;
    const int64_t size = end - begin;
    for (size_t i = 0; i < inverses.size(); ++i) {
      const int64_t from = i * blockRows, width = inverses[i].size;
      // Lᵀ stands above the diagonal.
      DoublePanels known(factor + from, from, width, n, /*isTransposed=*/false);
      known.multiply<Onto::Minus>(mine, size, n, mine + from, n);
      multiplyRows(inverses[i], /*isTransposed=*/true, mine + from, size, n);
    }
    for (size_t i = inverses.size(); i-- > 0;) {
      const int64_t from = i * blockRows, width = inverses[i].size, behind = from + width;
      DoublePanels known(factor + behind * n + from, n - behind, width, n, /*isTransposed=*/false);
      known.multiply<Onto::Minus>(mine + behind, size, n, mine + from, n);
      multiplyRows(inverses[i], /*isTransposed=*/false, mine + from, size, n);
    }
  });
}
