// Products in float32 alone. A stretch of the columns of the right operand is copied to where the
// loop reads it in order; each of its numbers is then multiplied with eight rows of the left one.
#include "RunHere.h"
#include "ctxc/Numerics/Dense.h"
#include <algorithm>
#include <vector>

using namespace ctxc;
using detail::Floats, detail::load, detail::runHere;

namespace {

constexpr int64_t lanes = 16, vectors = 2, width = lanes * vectors; ///< of a panel
constexpr int64_t height = 8;                                       ///< rows in registers together

/// k rows of `width` columns of the right operand, the last of them zero where it has fewer.
using Panel = std::vector<float>;

struct FloatProduct {
  const float *a, *b;
  int64_t m, n, k;
  bool isTransposed; ///< b is n × k
  float *c;
};

void fillPanel(const FloatProduct &p, int64_t from, Panel &panel) {
  const int64_t columns = std::min(width, p.n - from);
  if (!p.isTransposed) {
    for (int64_t row = 0; row < p.k; ++row)
      std::copy_n(p.b + row * p.n + from, columns, &panel[row * width]);
    return;
  }
  constexpr int64_t together = 16; // a cache line of each row
  for (int64_t begin = 0; begin < p.k; begin += together)
    for (int64_t column = 0; column < columns; ++column) {
      const float *row = p.b + (from + column) * p.k;
      for (int64_t at = begin, end = std::min(begin + together, p.k); at < end; ++at)
        panel[at * width + column] = row[at];
    }
}

[[gnu::always_inline]] inline void multiplyPanel(const FloatProduct &p, int64_t from,
                                                 const float *panel) {
  const int64_t columns = std::min(width, p.n - from);
  for (int64_t first = 0; first < p.m; first += height) {
    const float *rows[height];
    for (int64_t i = 0; i < height; ++i)
      rows[i] = p.a + std::min(first + i, p.m - 1) * p.k;
    Floats sums[height][vectors] = {};
    for (int64_t at = 0; at < p.k; ++at) {
      Floats x[vectors];
      for (int64_t v = 0; v < vectors; ++v)
        x[v] = load<Floats>(panel + at * width + v * lanes);
      for (int64_t i = 0; i < height; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          sums[i][v] += rows[i][at] * x[v];
    }
    for (int64_t i = 0; i < std::min(height, p.m - first); ++i) {
      const auto *made = reinterpret_cast<const float *>(sums[i]);
      std::copy_n(made, columns, p.c + (first + i) * p.n + from);
    }
  }
}

void run(const FloatProduct &p, ParallelRanges parallel) {
  parallel((p.n + width - 1) / width, [&](int64_t begin, int64_t end) {
    Panel panel(p.k * width);
    for (int64_t at = begin; at < end; ++at) {
      if (p.n - at * width < width)
        std::fill(panel.begin(), panel.end(), 0);
      fillPanel(p, at * width, panel);
      runHere([&] { multiplyPanel(p, at * width, panel.data()); });
    }
  });
}

} // namespace

void ctxc::multiply(const float *a, int64_t m, const float *b, int64_t n, int64_t k, float *c,
                    ParallelRanges parallel) {
  run({a, b, m, n, k, /*isTransposed=*/false, c}, parallel);
}

void ctxc::multiplyTransposed(const float *a, int64_t m, const float *b, int64_t n, int64_t k,
                              float *c, ParallelRanges parallel) {
  run({a, b, m, n, k, /*isTransposed=*/true, c}, parallel);
}
