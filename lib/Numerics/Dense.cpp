#include "ctxc/Numerics/Dense.h"
#include "RunHere.h"
#include <algorithm>
#include <cmath>

using namespace ctxc;
using detail::Floats, detail::load, detail::runHere;

namespace {

using HalfFloats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));

/// Rows of either operand whose products are in registers together.
constexpr int tile = 4;
/// Products of float32 that are summed in float32, at most, in each of 16 lanes.
constexpr int64_t chunk = 1024;
/// Rows of a block of the triangular factor.
constexpr int64_t blockRows = 64;

/// The rows that begin at `from`; the last is repeated where there are fewer.
template <typename T> struct TileRows {
  [[gnu::always_inline]] TileRows(const T *matrix, int64_t rows, int64_t stride, int64_t from) {
    for (int i = 0; i < tile; ++i)
      row[i] = matrix + std::min(from + i, rows - 1) * stride;
  }
  const T *row[tile];
};

[[gnu::always_inline]] inline double sumOf(const Doubles &vector) {
  double sum = 0;
  for (int lane = 0; lane < 8; ++lane)
    sum += vector[lane];
  return sum;
}

/// out = the products of each row of a with each of b.
[[gnu::always_inline]] inline void products(const TileRows<float> &a, const TileRows<float> &b,
                                            int64_t k, double (&out)[tile][tile]) {
  constexpr int64_t lanes = 16;
  Doubles sums[tile][tile] = {};
  const int64_t whole = k / lanes * lanes;
  for (int64_t begin = 0; begin < whole; begin += chunk) {
    Floats some[tile][tile] = {};
    for (int64_t at = begin, end = std::min(begin + chunk, whole); at < end; at += lanes) {
      Floats x[tile], y[tile];
      for (int i = 0; i < tile; ++i) {
        x[i] = load<Floats>(a.row[i] + at);
        y[i] = load<Floats>(b.row[i] + at);
      }
      for (int i = 0; i < tile; ++i)
        for (int j = 0; j < tile; ++j)
          some[i][j] += x[i] * y[j];
    }
    for (int i = 0; i < tile; ++i)
      for (int j = 0; j < tile; ++j) {
        const auto *half = reinterpret_cast<const HalfFloats *>(&some[i][j]);
        sums[i][j] +=
            __builtin_convertvector(half[0], Doubles) + __builtin_convertvector(half[1], Doubles);
      }
  }
  for (int i = 0; i < tile; ++i)
    for (int j = 0; j < tile; ++j) {
      double sum = sumOf(sums[i][j]);
      for (int64_t at = whole; at < k; ++at)
        sum += double(a.row[i][at]) * b.row[j][at];
      out[i][j] = sum;
    }
}

[[gnu::always_inline]] inline void products(const TileRows<double> &a, const TileRows<double> &b,
                                            int64_t k, double (&out)[tile][tile]) {
  constexpr int64_t lanes = 8;
  Doubles sums[tile][tile] = {};
  const int64_t whole = k / lanes * lanes;
  for (int64_t at = 0; at < whole; at += lanes) {
    Doubles x[tile], y[tile];
    for (int i = 0; i < tile; ++i) {
      x[i] = load<Doubles>(a.row[i] + at);
      y[i] = load<Doubles>(b.row[i] + at);
    }
    for (int i = 0; i < tile; ++i)
      for (int j = 0; j < tile; ++j)
        sums[i][j] += x[i] * y[j];
  }
  for (int i = 0; i < tile; ++i)
    for (int j = 0; j < tile; ++j) {
      double sum = sumOf(sums[i][j]);
      for (int64_t at = whole; at < k; ++at)
        sum += a.row[i][at] * b.row[j][at];
      out[i][j] = sum;
    }
}

/// A stretch of a product: rows [begin, end) of c, of `stride` numbers each.
template <typename T> struct Product {
  const T *a;
  int64_t m, strideA;
  const T *b;
  int64_t n, strideB, k;
  double *c;
  int64_t strideC;
};

template <bool subtract, typename T>
[[gnu::always_inline]] inline void multiplyRows(const Product<T> &p, int64_t begin, int64_t end) {
  for (int64_t j = 0; j < p.n; j += tile) {
    TileRows<T> right(p.b, p.n, p.strideB, j);
    for (int64_t i = begin; i < end; i += tile) {
      double out[tile][tile];
      products(TileRows<T>(p.a, p.m, p.strideA, i), right, p.k, out);
      for (int64_t r = 0; r < std::min<int64_t>(tile, end - i); ++r)
        for (int64_t s = 0; s < std::min<int64_t>(tile, p.n - j); ++s) {
          double &to = p.c[(i + r) * p.strideC + j + s];
          to = subtract ? to - out[r][s] : out[r][s];
        }
    }
  }
}

template <typename T> void multiply(const Product<T> &p, int64_t begin, int64_t end) {
  runHere([&] { multiplyRows<false>(p, begin, end); });
}
void subtractProduct(const Product<double> &p, int64_t begin, int64_t end) {
  runHere([&] { multiplyRows<true>(p, begin, end); });
}

/// Rows of c that are computed together, so that both operands' rows stay in the caches.
constexpr int64_t rowsTogether = 32;

template <typename Body> void overRows(int64_t rows, ParallelRanges parallel, Body body) {
  parallel((rows + rowsTogether - 1) / rowsTogether, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at)
      body(at * rowsTogether, std::min(rows, (at + 1) * rowsTogether));
  });
}

/// x L_iiᵀ = y for a row y, in place; L_ii is the block of `size` rows that begins at `factor`.
[[gnu::always_inline]] inline void solveBlock(const double *factor, int64_t stride, int64_t size,
                                              double *row) {
  for (int64_t j = 0; j < size; ++j) {
    double sum = row[j];
    for (int64_t p = 0; p < j; ++p)
      sum -= row[p] * factor[j * stride + p];
    row[j] = sum / factor[j * stride + j];
  }
}

/// The same with L_ii in place of its transpose, whose rows stand above the diagonal.
[[gnu::always_inline]] inline void solveBlockBack(const double *factor, int64_t stride,
                                                  int64_t size, double *row) {
  for (int64_t j = size; j-- > 0;) {
    double sum = row[j];
    for (int64_t p = j + 1; p < size; ++p)
      sum -= row[p] * factor[j * stride + p];
    row[j] = sum / factor[j * stride + j];
  }
}

void solveBlocks(const double *factor, int64_t stride, int64_t size, double *rows,
                 int64_t rowStride, int64_t count, bool back) {
  for (int64_t i = 0; i < count; ++i)
    if (back)
      solveBlockBack(factor, stride, size, rows + i * rowStride);
    else
      solveBlock(factor, stride, size, rows + i * rowStride);
}

/// The factor of a block on the diagonal.
bool factorBlock(double *a, int64_t stride, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    solveBlock(a, stride, i, a + i * stride);
    double sum = a[i * stride + i];
    for (int64_t p = 0; p < i; ++p)
      sum -= a[i * stride + p] * a[i * stride + p];
    if (!(sum > 0) || !std::isfinite(sum))
      return false;
    a[i * stride + i] = std::sqrt(sum);
  }
  return true;
}

} // namespace

void ctxc::multiplyTransposed(const float *a, int64_t m, const float *b, int64_t n, int64_t k,
                              double *c, ParallelRanges parallel) {
  Product<float> product{a, m, k, b, n, k, k, c, n};
  overRows(m, parallel, [&](int64_t begin, int64_t end) { multiply(product, begin, end); });
}

void ctxc::multiplyTransposed(const double *a, int64_t m, const double *b, int64_t n, int64_t k,
                              double *c, ParallelRanges parallel) {
  Product<double> product{a, m, k, b, n, k, k, c, n};
  overRows(m, parallel, [&](int64_t begin, int64_t end) { multiply(product, begin, end); });
}

bool ctxc::factorCholesky(double *a, int64_t n, ParallelRanges parallel) {
  for (int64_t from = 0; from < n; from += blockRows) {
    const int64_t size = std::min(blockRows, n - from);
    double *diagonal = a + from * n + from;
    // The block's columns, less what the columns before them explain.
    Product<double> known{a + from * n, n - from, n, a + from * n, size, n, from, diagonal, n};
    overRows(n - from, parallel,
             [&](int64_t begin, int64_t end) { subtractProduct(known, begin, end); });
    if (!factorBlock(diagonal, n, size))
      return false;
    const int64_t below = n - from - size;
    overRows(below, parallel, [&](int64_t begin, int64_t end) {
      solveBlocks(diagonal, n, size, diagonal + (size + begin) * n, n, end - begin,
                  /*back=*/false);
    });
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j)
      a[j * n + i] = a[i * n + j];
  return true;
}

void ctxc::solveCholesky(const double *factor, int64_t n, double *rows, int64_t count,
                         ParallelRanges parallel) {
  const int64_t blocks = (n + blockRows - 1) / blockRows;
  overRows(count, parallel, [&](int64_t begin, int64_t end) {
    double *mine = rows + begin * n;
    const int64_t size = end - begin;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t from = block * blockRows, width = std::min(blockRows, n - from);
      Product<double> known{mine, size, n, factor + from * n, width, n, from, mine + from, n};
      subtractProduct(known, 0, size);
      solveBlocks(factor + from * n + from, n, width, mine + from, n, size, /*back=*/false);
    }
    for (int64_t block = blocks; block-- > 0;) {
      const int64_t from = block * blockRows, width = std::min(blockRows, n - from);
      const int64_t behind = from + width;
      Product<double> known{mine + behind, size,        n, factor + from * n + behind, width, n,
                            n - behind,    mine + from, n};
      subtractProduct(known, 0, size);
      solveBlocks(factor + from * n + from, n, width, mine + from, n, size, /*back=*/true);
    }
  });
}
