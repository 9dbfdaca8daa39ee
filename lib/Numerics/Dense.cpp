#include "ctxc/Numerics/Dense.h"
#include "DoublePanels.h"
#include <algorithm>

using namespace ctxc;
using detail::DoublePanels, detail::Doubles, detail::Floats, detail::load, detail::Onto,
    detail::runHere;

namespace {

using HalfFloats = float __attribute__((vector_size(32)));

/// Rows of either operand whose products are in registers together.
constexpr int tile = 4;
/// Products of float32 that are summed in float32, at most, in each of 16 lanes.
constexpr int64_t chunk = 1024;

/// The rows that begin at `from`; the last is repeated where there are fewer.
struct TileRows {
  [[gnu::always_inline]] TileRows(const float *matrix, int64_t rows, int64_t stride, int64_t from) {
    for (int i = 0; i < tile; ++i)
      row[i] = matrix + std::min(from + i, rows - 1) * stride;
  }
  const float *row[tile];
};

[[gnu::always_inline]] inline double sumOf(const Doubles &vector) {
  double sum = 0;
  for (int lane = 0; lane < 8; ++lane)
    sum += vector[lane];
  return sum;
}

/// out = the products of each row of a with each of b.
[[gnu::always_inline]] inline void products(const TileRows &a, const TileRows &b, int64_t k,
                                            double (&out)[tile][tile]) {
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

/// c = a bᵀ, for rows of c that are computed together so that both operands' rows stay in the
/// caches, and the columns before `columns`.
[[gnu::always_inline]] inline void multiplyRows(const float *a, int64_t m, const float *b,
                                                int64_t n, int64_t k, double *c, int64_t begin,
                                                int64_t end, int64_t columns) {
  for (int64_t j = 0; j < columns; j += tile) {
    TileRows right(b, n, k, j);
    for (int64_t i = begin; i < end; i += tile) {
      double out[tile][tile];
      products(TileRows(a, m, k, i), right, k, out);
      for (int64_t r = 0; r < std::min<int64_t>(tile, end - i); ++r)
        for (int64_t s = 0; s < std::min<int64_t>(tile, n - j); ++s)
          c[(i + r) * n + j + s] = out[r][s];
    }
  }
}

constexpr int64_t rowsTogether = 32;
/// Columns of a float64 product that are computed together.
constexpr int64_t columnsTogether = 48;

/// body(begin, end) over blocks of `size`.
template <typename Body>
void overBlocks(int64_t count, int64_t size, ParallelRanges parallel, Body body) {
  parallel((count + size - 1) / size, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at)
      body(at * size, std::min(count, (at + 1) * size));
  });
}

/// The same over blocks of which later ones take longer: an early one and a late one by turns.
template <typename Body>
void overGrowingBlocks(int64_t count, int64_t size, ParallelRanges parallel, Body body) {
  const int64_t blocks = (count + size - 1) / size;
  auto one = [&](int64_t at) { body(at * size, std::min(count, (at + 1) * size)); };
  parallel((blocks + 1) / 2, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      one(at);
      if (blocks - 1 - at != at)
        one(blocks - 1 - at);
    }
  });
}

void mirror(double *c, int64_t n) {
  constexpr int64_t size = 16; // so that both blocks stay in the cache
  for (int64_t from = 0; from < n; from += size)
    for (int64_t column = 0; column <= from; column += size)
      for (int64_t i = from; i < std::min(from + size, n); ++i)
        for (int64_t j = column; j < std::min(column + size, i); ++j)
          c[j * n + i] = c[i * n + j];
}

} // namespace

void ctxc::multiplyTransposed(const float *a, int64_t m, const float *b, int64_t n, int64_t k,
                              double *c, ParallelRanges parallel) {
  overBlocks(m, rowsTogether, parallel, [&](int64_t begin, int64_t end) {
    runHere([&] { multiplyRows(a, m, b, n, k, c, begin, end, n); });
  });
}

void ctxc::multiplyTransposed(const double *a, int64_t m, const double *b, int64_t n, int64_t k,
                              double *c, ParallelRanges parallel) {
  overBlocks(n, columnsTogether, parallel, [&](int64_t begin, int64_t end) {
    DoublePanels panels(b + begin * k, k, end - begin, k, /*isTransposed=*/true);
    panels.multiply<Onto::Zero>(a, m, k, c + begin, n);
  });
}

void ctxc::multiplyByFloats(const double *a, int64_t m, const float *b, int64_t n, int64_t k,
                            double *c, ParallelRanges parallel) {
  overBlocks(n, columnsTogether, parallel, [&](int64_t begin, int64_t end) {
    DoublePanels panels(b + begin, k, end - begin, n, /*isTransposed=*/false);
    panels.multiply<Onto::Zero>(a, m, k, c + begin, n);
  });
}

void ctxc::multiplySymmetric(const float *a, const float *b, int64_t n, int64_t k, double *c,
                             ParallelRanges parallel) {
  overGrowingBlocks(n, rowsTogether, parallel, [&](int64_t begin, int64_t end) {
    runHere([&] { multiplyRows(a, n, b, n, k, c, begin, end, end); });
  });
  mirror(c, n);
}

void ctxc::multiplySymmetric(const double *a, const double *b, int64_t n, int64_t k, double *c,
                             ParallelRanges parallel) {
  overGrowingBlocks(n, columnsTogether, parallel, [&](int64_t begin, int64_t end) {
    DoublePanels panels(b + begin * k, k, end - begin, k, /*isTransposed=*/true);
    panels.multiply<Onto::Zero>(a + begin * k, n - begin, k, c + begin * n + begin, n);
  });
  mirror(c, n);
}
