// Many weighted Gram matrices of the same rows: one product of all weights with the products of the
// rows' numbers, which are made panel by panel.
#include "RunHere.h"
#include "ctxc/Numerics/Dense.h"
#include <algorithm>
#include <vector>

using namespace ctxc;
using detail::Floats, detail::load, detail::runHere;

namespace {

constexpr int64_t lanes = 16, vectors = 2;
constexpr int64_t height = 8; ///< weights in registers together
/// Rows that are summed in float32.
constexpr int64_t chunk = 512;

/// Some columns of a Gram matrix's row, at most as many as there are lanes.
struct Stretch {
  int64_t row, column;
};

struct Grams {
  const float *rows; ///< count × width
  int64_t count, width;
  const float *weights; ///< m × count
  int64_t m;
  double *grams; ///< m × width × width

  /// The part of the triangle below the diagonal.
  std::vector<Stretch> stretches() const {
    std::vector<Stretch> all;
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j <= i; j += lanes)
        all.push_back({i, j});
    return all;
  }
};

void fillPanel(const Grams &g, const Stretch *some, int64_t stretches, int64_t from, int64_t to,
               float *panel) {
  for (int64_t t = from; t < to; ++t, panel += vectors * lanes)
    for (int64_t s = 0; s < stretches; ++s) {
      const float *row = g.rows + t * g.width, factor = row[some[s].row];
      const int64_t columns = std::min(lanes, g.width - some[s].column);
      for (int64_t c = 0; c < columns; ++c)
        panel[s * lanes + c] = factor * row[some[s].column + c];
    }
}

[[gnu::always_inline]] inline void addPanel(const Grams &g, const float *panel, int64_t from,
                                            int64_t to, double *sums) {
  for (int64_t first = 0; first < g.m; first += height) {
    const float *weights[height];
    for (int64_t i = 0; i < height; ++i)
      weights[i] = g.weights + std::min(first + i, g.m - 1) * g.count;
    Floats some[height][vectors] = {};
    for (int64_t t = from; t < to; ++t) {
      Floats x[vectors];
      for (int64_t v = 0; v < vectors; ++v)
        x[v] = load<Floats>(panel + ((t - from) * vectors + v) * lanes);
      for (int64_t i = 0; i < height; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          some[i][v] += weights[i][t] * x[v];
    }
    for (int64_t i = 0; i < std::min(height, g.m - first); ++i)
      for (int64_t v = 0; v < vectors; ++v)
        for (int64_t lane = 0; lane < lanes; ++lane)
          sums[((first + i) * vectors + v) * lanes + lane] += some[i][v][lane];
  }
}

void store(const Grams &g, const Stretch &at, const double *sums, int64_t vector) {
  for (int64_t e = 0; e < g.m; ++e)
    for (int64_t c = 0; c < lanes && at.column + c <= at.row; ++c) {
      double *gram = g.grams + e * g.width * g.width;
      gram[at.row * g.width + at.column + c] = gram[(at.column + c) * g.width + at.row] =
          sums[(e * vectors + vector) * lanes + c];
    }
}

} // namespace

void ctxc::weightedGrams(const float *rows, int64_t count, int64_t width, const float *weights,
                         int64_t m, double *grams, ParallelRanges parallel) {
  const Grams g{rows, count, width, weights, m, grams};
  const std::vector<Stretch> all = g.stretches();
  parallel((all.size() + vectors - 1) / vectors, [&](int64_t begin, int64_t end) {
    std::vector<float> panel(chunk * vectors * lanes);
    std::vector<double> sums(m * vectors * lanes);
    for (int64_t at = begin; at < end; ++at) {
      const Stretch *some = &all[at * vectors];
      const int64_t stretches = std::min<int64_t>(vectors, all.size() - at * vectors);
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t from = 0; from < count; from += chunk) {
        const int64_t to = std::min(count, from + chunk);
        runHere([&] {
          fillPanel(g, some, stretches, from, to, panel.data());
          addPanel(g, panel.data(), from, to, sums.data());
        });
      }
      for (int64_t s = 0; s < stretches; ++s)
        store(g, some[s], sums.data(), s);
    }
  });
}
