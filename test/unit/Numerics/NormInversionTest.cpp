#include "ctxc/Numerics/NormInversion.h"

#include "Problems.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::test;

static const Update moving[] = {Update::Least, Update::Balanced, Update::Stable, Update::Scaled};

TEST(Update, KernelsCallEachByItsNumber) {
  for (auto [number, update] : llvm::enumerate(allUpdates))
    EXPECT_EQ(updateNumbered(number), update) << updateNames[number];
  for (int64_t number : {int64_t(-1), int64_t(std::size(allUpdates)), int64_t(1) << 32})
    EXPECT_EQ(updateNumbered(number), Update::Naive) << number;
}

TEST(NormInversion, EveryUpdateButScaledIsExact) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    int64_t d = uniformInt(random, 1, 200);
    Vector m = gaussian(random, d), data = gaussian(random, d, uniform(random, 0.1, 30));
    Vector g = gaussian(random, d, uniform(random, 0.1, 3));
    for (Update update : {Update::Least, Update::Balanced, Update::Naive, Update::Stable}) {
      Solution found = solve(update, g, m, data, 1e-6);
      EXPECT_LT(residual(g, m, found), 1e-12) << stringifyUpdate(update);
      EXPECT_EQ(found.counts.harmful, 0);
    }
  }
}

TEST(NormInversion, ExactWithZerosAndNegativeScales) {
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    int64_t d = uniformInt(random, 3, 60);
    Vector m = gaussian(random, d), data = gaussian(random, d), g = gaussian(random, d);
    for (int64_t zeros = uniformInt(random, 1, 3); zeros > 0; --zeros) {
      m[uniformInt(random, 0, d - 1)] = 0;
      g[uniformInt(random, 0, d - 1)] = 0;
    }
    if (norm(g) == 0)
      continue;
    // They divide by n only where g is not zero, and keep n away from zero there.
    for (Update update : {Update::Least, Update::Balanced, Update::Naive}) {
      Solution found = solve(update, g, m, data, 1e-6);
      EXPECT_LT(residual(g, m, found), 1e-12) << stringifyUpdate(update);
      EXPECT_EQ(found.counts.harmful, 0);
    }
  }
}

TEST(NormInversion, KeepsTheRms) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    int64_t d = uniformInt(random, 1, 100);
    double scale = std::pow(10, uniform(random, -4, 4)), eps = trial % 2 ? 1e-6 : 0;
    Vector m = gaussian(random, d), g = gaussian(random, d), data = gaussian(random, d, scale);
    for (Update update : allUpdates)
      EXPECT_NEAR(rms(solve(update, g, m, data, eps).target) / rms(data), 1, 1e-12);
  }
}

TEST(NormInversion, SignsKeepTheScalesSigns) {
  Random random(4);
  Vector m = gaussian(random, 50), g = gaussian(random, 50), data = gaussian(random, 50);
  m[7] = 0;
  for (Update update : {Update::Least, Update::Balanced}) {
    Solution found = solve(update, g, m, data, 1e-6);
    for (int k = 0; k < 50; ++k) {
      if (k != 7)
        EXPECT_GT((m[k] + found.delta[k]) * m[k], 0);
    }
    EXPECT_EQ(found.target[7] < 0, data[7] < 0);
  }
}

TEST(NormInversion, NoPatchWhereNoneIsNeeded) {
  // With v_C = v: g = m ⊙ Norm(data); also within the ball of ε, where mean(n²) = ½.
  Random random(5);
  for (double scale : {1e-3, 1.0, 1e3}) {
    for (int trial = 0; trial < 50; ++trial) {
      int64_t d = uniformInt(random, 2, 300);
      Vector m = gaussian(random, d), data = gaussian(random, d, scale);
      if (trial % 2)
        m[0] = 0, m[d / 2] = 0;
      Vector g = scaledNorm(m, data, 1e-6);
      // (Balanced moves m to the smallest ‖m + Δm‖, whatever the difference is.)
      for (Update update : {Update::Least, Update::Naive, Update::Stable, Update::Scaled}) {
        Solution found = solve(update, g, m, data, 1e-6);
        EXPECT_LT(norm(found.delta), 1e-6 * norm(m)) << stringifyUpdate(update);
        EXPECT_LT(residual(g, m, found), 1e-12);
        EXPECT_EQ(found.counts.harmful, 0);
        for (int64_t k = 0; k < d; ++k)
          EXPECT_NEAR(found.target[k], data[k], 1e-6 * norm(data));
      }
    }
  }
}

TEST(NormInversion, LeastDeltaGrowsContinuouslyFromZero) {
  Random random(6);
  Vector m = gaussian(random, 64), data = gaussian(random, 64), noise = gaussian(random, 64);
  Vector same = scaledNorm(m, data, 1e-6);
  double previous = INFINITY;
  for (double size : {1e-2, 1e-4, 1e-6, 1e-8}) {
    Vector g = same;
    for (int k = 0; k < 64; ++k)
      g[k] *= 1 + size * noise[k];
    double length = norm(solve(Update::Least, g, m, data, 1e-6).delta);
    EXPECT_LT(length, 2 * size * norm(m));
    EXPECT_LT(length, previous);
    previous = length;
  }
}

TEST(NormInversion, BalancedIsItsClosedForm) {
  Random random(7);
  int64_t d = 40;
  double eps = 1e-6;
  Vector m = gaussian(random, d), data = gaussian(random, d, 1e-3), g = gaussian(random, d);
  double rho = rms(data) * rms(data) / (rms(data) * rms(data) + eps), mean = 0;
  for (double value : g)
    mean += std::fabs(value) / d;
  Solution found = solve(Update::Balanced, g, m, data, eps);
  Vector patched(d);
  for (int k = 0; k < d; ++k) {
    EXPECT_NEAR(found.n[k] * found.n[k], rho * std::fabs(g[k]) / mean, 1e-12);
    patched[k] = m[k] + found.delta[k];
  }
  EXPECT_NEAR(norm(patched), std::sqrt(d / rho) * mean, 1e-10);
}

TEST(NormInversion, ScaledIsProportionalAndOneScalar) {
  Random random(8);
  int64_t d = 30;
  Vector m = gaussian(random, d), data = gaussian(random, d), g = gaussian(random, d, 4);
  Solution found = solve(Update::Scaled, g, m, data, 0);
  double factor = found.n[0] * m[0] / g[0], s = 1 + found.delta[0] / m[0];
  for (int k = 0; k < d; ++k) {
    EXPECT_NEAR(found.n[k], factor * g[k] / m[k], 1e-11);
    EXPECT_NEAR(found.delta[k], (s - 1) * m[k], 1e-11);
  }
  EXPECT_LT(residual(g, m, found), 1e-12);

  // Where the scale is zero, the data does not change, and a nonzero target is counted.
  m[3] = m[4] = 0, g[4] = 0;
  found = solve(Update::Scaled, g, m, data, 0);
  EXPECT_NEAR(found.target[3], data[3], 1e-13);
  EXPECT_NEAR(found.target[4], data[4], 1e-13);
  EXPECT_EQ(found.counts.harmful, 1);
}

TEST(NormInversion, NaiveAndZeroTargetLeaveTheDataAlone) {
  Random random(9);
  Vector m = gaussian(random, 20), data = gaussian(random, 20), g = gaussian(random, 20);
  EXPECT_EQ(solve(Update::Naive, g, m, data, 1e-6).target, data);
  Vector zero(20, 0);
  for (Update update : allUpdates) {
    Solution found = solve(update, zero, m, data, 1e-6);
    EXPECT_EQ(found.target, data);
    EXPECT_LT(residual(zero, m, found), 1e-15); // Δm = −m: the identity holds
  }
}

TEST(NormInversion, ZeroDataGetsRmsOne) {
  Random random(10);
  Vector m = gaussian(random, 20), data(20, 0), g = gaussian(random, 20);
  for (Update update : moving) {
    Solution found = solve(update, g, m, data, 1e-6);
    EXPECT_NEAR(rms(found.target), 1, 1e-12);
    EXPECT_LT(residual(g, m, found), 1e-12);
  }
  Solution naive = solve(Update::Naive, g, m, data, 1e-6);
  EXPECT_EQ(naive.target, data);
  EXPECT_EQ(naive.counts.harmful, 20);
}

TEST(NormInversion, AllScalesZero) {
  Random random(11);
  Vector m(20, 0), data = gaussian(random, 20), g = gaussian(random, 20);
  for (Update update : {Update::Least, Update::Balanced, Update::Naive, Update::Stable}) {
    Solution found = solve(update, g, m, data, 1e-6);
    EXPECT_LT(residual(g, m, found), 1e-12) << stringifyUpdate(update);
  }
}

TEST(NormInversion, FiniteAtExtremeMagnitudes) {
  Random random(12);
  const double sizes[] = {0, 1e-300, 1e-30, 1, 1e30, 1e300};
  for (double sizeG : sizes)
    for (double sizeM : sizes)
      for (double sizeData : sizes)
        for (double eps : {0.0, 1e-6}) {
          Vector g = gaussian(random, 9, 1), m = gaussian(random, 9, 1);
          Vector data = gaussian(random, 9, 1);
          for (int k = 0; k < 9; ++k) {
            // Every combination of zero, ordinary and extreme entries within one vector.
            g[k] *= k % 3 == 0 ? sizeG : 1;
            m[k] *= k / 3 == 0 ? sizeM : 1;
            data[k] *= sizeData;
          }
          for (Update update : allUpdates) {
            Solution found = solve(update, g, m, data, eps);
            for (int k = 0; k < 9; ++k) {
              EXPECT_TRUE(std::isfinite(found.target[k]) && std::isfinite(found.n[k]) &&
                          std::isfinite(found.delta[k]))
                  << stringifyUpdate(update) << " g " << sizeG << " m " << sizeM << " data "
                  << sizeData;
            }
          }
        }
}

TEST(NormInversion, ScaleInvariance) {
  // Multiplying g and m by a factor only multiplies Δm by that factor.
  Random random(13);
  Vector m = gaussian(random, 30), data = gaussian(random, 30), g = gaussian(random, 30);
  for (Update update : allUpdates) {
    Solution plain = solve(update, g, m, data, 0);
    for (double factor : {1e-30, 1e30}) {
      Vector gf = g, mf = m;
      for (int k = 0; k < 30; ++k)
        gf[k] *= factor, mf[k] *= factor;
      Solution scaled = solve(update, gf, mf, data, 0);
      for (int k = 0; k < 30; ++k) {
        EXPECT_NEAR(scaled.target[k], plain.target[k], 1e-10);
        EXPECT_NEAR(scaled.delta[k] / factor, plain.delta[k], 1e-8 * norm(plain.delta));
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Stable
//===----------------------------------------------------------------------===//

static double misfit(const Vector &g, const Vector &m, const Vector &n) {
  Vector difference(g.size());
  for (size_t k = 0; k < g.size(); ++k)
    difference[k] = m[k] * n[k] - g[k];
  return norm(difference);
}

TEST(Stable, DeltaIsMinusMuOverM) {
  // It follows from x_k = g_k m_k / (m_k² − μ) that Δm_k m_k is the same for all k.
  Random random(20);
  for (int trial = 0; trial < 50; ++trial) {
    Vector m = gaussian(random, 40), data = gaussian(random, 40), g = gaussian(random, 40);
    Solution found = solve(Update::Stable, g, m, data, 1e-6);
    double mu = -found.delta[0] * m[0], smallest = INFINITY;
    for (int k = 0; k < 40; ++k) {
      EXPECT_NEAR(-found.delta[k] * m[k] / mu, 1, 1e-5);
      smallest = std::min(smallest, m[k] * m[k]);
    }
    EXPECT_LE(mu, smallest);
  }
}

TEST(Stable, NoPointOfTheSphereIsCloser) {
  Random random(21);
  for (int trial = 0; trial < 200; ++trial) {
    int64_t d = uniformInt(random, 2, 8);
    Vector m = gaussian(random, d), data = gaussian(random, d);
    Vector g = gaussian(random, d, uniform(random, 0.05, 2));
    if (trial % 3 == 0)
      m[uniformInt(random, 0, d - 1)] = 0;
    if (trial % 4 == 0) // several equal minima
      m[0] = 0.01, m[d - 1] = -0.01;
    if (trial % 5 == 0)
      g[0] = 0;
    Solution found = solve(Update::Stable, g, m, data, 0);
    double best = misfit(g, m, found.n);
    EXPECT_NEAR(rms(found.n), 1, 1e-12);
    for (int guess = 0; guess < 400; ++guess) {
      Vector n = found.n, step = gaussian(random, d, std::pow(10, uniform(random, -6, 1)));
      for (int64_t k = 0; k < d; ++k)
        n[k] += step[k];
      double size = rms(n);
      for (double &value : n)
        value /= size;
      EXPECT_GE(misfit(g, m, n), best - 1e-12 * (1 + norm(g)));
    }
  }
}

TEST(Stable, HardCaseZeroScale) {
  // (1·x₀ − ½)², (2·x₁ − ½)² can both vanish: x = (½, ¼, rest), Σ x² = 3.
  Vector g = {0.5, 0.5, 0.3}, m = {1, 2, 0}, data = {1, 1, -1};
  Solution found = solve(Update::Stable, g, m, data, 0);
  EXPECT_NEAR(found.n[0], 0.5, 1e-14);
  EXPECT_NEAR(found.n[1], 0.25, 1e-14);
  EXPECT_NEAR(found.n[2], -std::sqrt(3 - 0.3125), 1e-14);
  EXPECT_LT(residual(g, m, found), 1e-14);
}

TEST(Stable, HardCaseSeveralEqualMinima) {
  // μ = min m² = 1: x₀ = 0.6·3/(9 − 1). g = 0 where |m| = 1; of these components, the one with the
  // largest data takes the rest.
  Vector g = {0.6, 0, 0, 0}, m = {3, 1, -1, 1}, data = {1, 1, -5, 2};
  Solution found = solve(Update::Stable, g, m, data, 0);
  EXPECT_NEAR(found.n[0], 0.225, 1e-14);
  EXPECT_EQ(found.n[1], 0);
  EXPECT_NEAR(found.n[2], -std::sqrt(4 - 0.225 * 0.225), 1e-14);
  EXPECT_EQ(found.n[3], 0);
  EXPECT_LT(residual(g, m, found), 1e-14);
  EXPECT_EQ(found.counts.harmless, 2);
}

TEST(Stable, NearTheHardCase) {
  for (double small : {1e-4, 1e-8, 1e-12, 1e-16, 1e-30}) {
    Vector g = {0.6, small, 0.2}, m = {3, 1, 2}, data = {1, 1, 1};
    Solution found = solve(Update::Stable, g, m, data, 0);
    EXPECT_NEAR(rms(found.n), 1, 1e-14);
    double mu = 1; // up to `small`
    EXPECT_NEAR(found.n[0], 0.6 * 3 / (9 - mu), small + 1e-14);
    EXPECT_NEAR(found.n[2], 0.2 * 2 / (4 - mu), small + 1e-14);
  }
}

//===----------------------------------------------------------------------===//
// The scale, and the norm
//===----------------------------------------------------------------------===//

TEST(SolveScale, ZeroOverZeroIsHarmlessAndCountedApart) {
  Vector g = {0, 2, 0, 3}, m = {5, 6, 7, 8}, n = {0, 0, 1, 1.5}, delta(4);
  ScaleCounts counts = solveScale(Update::Least, g, m, n, delta);
  EXPECT_EQ(delta, (Vector{0, 2, -7, -6}));
  EXPECT_EQ(counts.harmless, 1);
  EXPECT_EQ(counts.harmful, 1);
}

TEST(SolveScale, RoundedZeroCountsAsZero) {
  Vector g = {0, 1}, m = {5, 1}, n = {1e-16, 1}, delta(2);
  EXPECT_EQ(solveScale(Update::Least, g, m, n, delta).harmless, 1);
  EXPECT_EQ(delta, (Vector{0, 0}));
}

TEST(SolveScale, QuotientOutOfRangeIsHarmful) {
  Vector g = {1e300, 1}, m = {1, 1}, n = {1e-300, 1}, delta(2);
  EXPECT_EQ(solveScale(Update::Naive, g, m, n, delta).harmful, 1);
  EXPECT_EQ(delta, (Vector{1e300, 0}));
}

TEST(RmsNormalize, DividesByTheLength) {
  Vector x = {1, 2, -3}, n(3);
  double divisor = std::sqrt(14.0 / 3 + 1);
  rmsNormalize(x, 1, n);
  EXPECT_NEAR(n[2], -3 / divisor, 1e-15);
  Vector zero(3, 0);
  rmsNormalize(zero, 0, n);
  EXPECT_EQ(n, zero);
}
