// Random patches of a post-norm scale, and plain formulas to check them.
#ifndef CTXC_TEST_UNIT_NUMERICS_PROBLEMS_H
#define CTXC_TEST_UNIT_NUMERICS_PROBLEMS_H

#include "ctxc/Numerics/NormInversion.h"
#include <cmath>
#include <random>
#include <vector>

namespace ctxc::test {

using Vector = std::vector<double>;
using Random = std::mt19937_64;

inline Vector gaussian(Random &random, int64_t d, double scale = 1) {
  std::normal_distribution<double> normal(0, scale);
  Vector values(d);
  for (double &value : values)
    value = normal(random);
  return values;
}

inline int64_t uniformInt(Random &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

inline double uniform(Random &random, double lo, double hi) {
  return std::uniform_real_distribution<double>(lo, hi)(random);
}

inline double norm(const Vector &x) {
  double squares = 0;
  for (double value : x)
    squares += value * value;
  return std::sqrt(squares);
}

inline double rms(const Vector &x) { return norm(x) / std::sqrt(double(x.size())); }

/// m ⊙ Norm(x) by its textbook formula.
inline Vector scaledNorm(const Vector &m, const Vector &x, double eps) {
  double divisor = std::sqrt(rms(x) * rms(x) + eps);
  Vector y(x.size());
  for (size_t k = 0; k < x.size(); ++k)
    y[k] = m[k] * x[k] / divisor;
  return y;
}

struct Solution {
  Vector target, n, delta;
  ScaleCounts counts;
};

/// Both steps in float64, as a kernel takes them.
inline Solution solve(Update update, const Vector &g, const Vector &m, const Vector &data,
                      double eps) {
  size_t d = g.size();
  Solution found{Vector(d), Vector(d), Vector(d), {}};
  Vector scratch(scratchDoubles(d));
  invertRmsNorm(update, g, m, data, eps, found.target, scratch);
  rmsNormalize(found.target, eps, found.n);
  found.counts = solveScale(update, g, m, found.n, found.delta);
  return found;
}

/// max |(m + Δm) n − g| / max |g|.
inline double residual(const Vector &g, const Vector &m, const Solution &found) {
  double worst = 0, largest = 0;
  for (size_t k = 0; k < g.size(); ++k) {
    worst = std::max(worst, std::fabs((m[k] + found.delta[k]) * found.n[k] - g[k]));
    largest = std::max(largest, std::fabs(g[k]));
  }
  return largest > 0 ? worst / largest : worst;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_NUMERICS_PROBLEMS_H
