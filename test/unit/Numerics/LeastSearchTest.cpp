// The least update compared with a search that does not know how it is solved: it exchanges Σ n²
// between pairs of components, from many starting points.
#include "ctxc/Numerics/NormInversion.h"

#include "Problems.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::test;

/// The cost of component k with n_k² = s.
static double cost(double g, double m, double s) {
  double a = std::fabs(g), M = std::fabs(m);
  if (a == 0)
    return s == 0 ? 0 : M * M;
  if (s == 0)
    return INFINITY;
  double change = a / std::sqrt(s) - M;
  return change * change;
}

static double totalCost(const Vector &g, const Vector &m, const Vector &s) {
  double total = 0;
  for (size_t k = 0; k < g.size(); ++k)
    total += cost(g[k], m[k], s[k]);
  return total;
}

/// Improves s by the best exchange found on a grid, for random pairs of components.
static double search(Random &random, const Vector &g, const Vector &m, Vector s, int exchanges) {
  int64_t d = g.size();
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    int64_t i = uniformInt(random, 0, d - 1), j = uniformInt(random, 0, d - 1);
    if (i == j)
      continue;
    double both = s[i] + s[j], best = cost(g[i], m[i], s[i]) + cost(g[j], m[j], s[j]);
    double here = s[i], width = std::pow(10, uniform(random, -7, 0)) * both;
    auto attempt = [&](double si) {
      if (!(si >= 0 && si <= both))
        return;
      double c = cost(g[i], m[i], si) + cost(g[j], m[j], both - si);
      if (c < best)
        best = c, s[i] = si, s[j] = both - si;
    };
    for (int point = 0; point <= 16; ++point) {
      attempt(both * point / 16);
      attempt(here + width * (point - 8) / 8);
    }
    // Where one of the two costs nothing.
    attempt(m[i] != 0 ? (g[i] / m[i]) * (g[i] / m[i]) : 0);
    attempt(m[j] != 0 ? both - (g[j] / m[j]) * (g[j] / m[j]) : both);
  }
  return totalCost(g, m, s);
}

static double bestOfSearch(Random &random, const Vector &g, const Vector &m, double budget) {
  int64_t d = g.size();
  double best = INFINITY;
  for (int start = 0; start < 12 + d; ++start) {
    Vector s(d);
    double total = 0;
    for (int64_t k = 0; k < d; ++k) {
      s[k] = std::pow(uniform(random, 0.01, 1), start % 3 * 4 + 1);
      if (start >= 12) // almost all at one component
        s[k] = k == start - 12 ? 1 : 1e-3;
      total += s[k];
    }
    for (double &value : s)
      value *= budget / total;
    best = std::min(best, search(random, g, m, s, 250));
  }
  return best;
}

struct Drawn {
  Vector g, m, data;
};

/// Problems that shrink, fit and grow; zeros and negative entries in m and g.
static Drawn draw(Random &random, int trial) {
  int64_t d = uniformInt(random, 2, 7);
  Drawn p{gaussian(random, d), gaussian(random, d), gaussian(random, d)};
  const double noise[] = {0.02, 0.3, 1}, factors[] = {0.3, 0.6, 0.9, 0.99, 1, 1.5, 4};
  double size = rms(p.data), spread = noise[trial % 3], factor = factors[trial % 7];
  for (int64_t k = 0; k < d; ++k) {
    p.m[k] *= std::pow(10, uniform(random, -1, 1));
    p.g[k] = p.m[k] * p.data[k] / size * (1 + spread * p.g[k]) * factor;
  }
  if (trial % 5 == 0)
    p.g[uniformInt(random, 0, d - 1)] = 0;
  if (trial % 8 == 0)
    p.m[uniformInt(random, 0, d - 1)] = 0;
  return p;
}

TEST(LeastSearch, NeverBeaten) {
  Random random(100);
  int solved = 0, strictly = 0;
  for (int trial = 0; trial < 900; ++trial) {
    Drawn p = draw(random, trial);
    if (norm(p.g) == 0)
      continue;
    Solution found = solve(Update::Least, p.g, p.m, p.data, 0);
    double own = norm(found.delta) * norm(found.delta);
    double other = bestOfSearch(random, p.g, p.m, double(p.g.size()));
    EXPECT_LE(own, other * (1 + 1e-6) + 1e-9) << "trial " << trial;
    Vector s(p.g.size());
    for (size_t k = 0; k < s.size(); ++k)
      s[k] = found.n[k] * found.n[k];
    EXPECT_GE(search(random, p.g, p.m, s, 200), own * (1 - 1e-6) - 1e-9) << "trial " << trial;
    EXPECT_LT(residual(p.g, p.m, found), 1e-12);
    ++solved;
    strictly += own < other * (1 - 1e-9);
  }
  EXPECT_GT(solved, 850);
  EXPECT_GT(strictly, 100); // the search finds other solutions, not copies
}

TEST(LeastSearch, NoLongerThanTheOthers) {
  Random random(101);
  for (int trial = 0; trial < 400; ++trial) {
    int64_t d = uniformInt(random, 2, 400);
    Vector m = gaussian(random, d), data = gaussian(random, d, uniform(random, 1e-3, 5));
    Vector g = scaledNorm(m, data, 1e-6), shift = gaussian(random, d);
    double size = std::pow(10, uniform(random, -4, 0.5));
    for (int64_t k = 0; k < d; ++k)
      g[k] += size * shift[k];
    if (trial % 4 == 0)
      m[uniformInt(random, 0, d - 1)] = 0;
    double least = norm(solve(Update::Least, g, m, data, 1e-6).delta);
    for (Update update : {Update::Balanced, Update::Naive, Update::Stable, Update::Scaled}) {
      Solution other = solve(update, g, m, data, 1e-6);
      if (other.counts.harmful == 0 && residual(g, m, other) < 1e-9)
        EXPECT_LE(least, norm(other.delta) * (1 + 1e-9) + 1e-12) << stringifyUpdate(update);
    }
  }
}

TEST(LeastSearch, SinkCostsNothing) {
  // g/m takes only part of the sphere; component 2 has neither scale nor target.
  Vector g = {0.5, -0.5, 0}, m = {1, 2, 0}, data = {1, 1, -2};
  Solution found = solve(Update::Least, g, m, data, 0);
  EXPECT_LT(norm(found.delta), 1e-15);
  EXPECT_NEAR(found.n[2], -std::sqrt(3 - 0.25 - 0.0625), 1e-14);
}

TEST(LeastSearch, DumpBeatsSpreadWhereOneScaleIsSmall) {
  // Only a little is left to place: the component with the tiny scale takes it, at a cost of at
  // most its square.
  Vector g = {0.9, 0.9, 0.005}, m = {1, 1, 0.01}, data = {1, 1, 1};
  Solution found = solve(Update::Least, g, m, data, 0);
  EXPECT_LT(norm(found.delta), 0.01);
  EXPECT_LT(std::fabs(found.delta[0]), 1e-3);
}
