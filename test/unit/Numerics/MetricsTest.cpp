#include "ctxc/Numerics/Metrics.h"

#include "Problems.h"
#include "gtest/gtest.h"
#include <chrono>

using namespace ctxc;
using namespace ctxc::test;

static const double inf = INFINITY;

TEST(Metrics, HandComputed) {
  // P = (½, ¼, ¼), Q = (¼, ½, ¼).
  Vector p = {std::log(2), 0, 0}, q = {0, std::log(2), 0};
  TokenMetrics m = compareLogits(p, q);
  EXPECT_EQ(m.baselineToken, 0);
  EXPECT_EQ(m.token, 1);
  EXPECT_FALSE(m.match);
  EXPECT_DOUBLE_EQ(m.linf, std::log(2));
  EXPECT_NEAR(m.totalVariation, 0.25, 1e-15);
  // ½ · 2 (√½ − ½)² under the root.
  EXPECT_NEAR(m.hellinger, std::sqrt(0.5) - 0.5, 1e-15);
  EXPECT_NEAR(m.top1Difference, 0.25, 1e-15);
  // R(p) = (2, 0, 1), R(q) = (0, 2, 1): 1 − 6·8/24.
  EXPECT_NEAR(m.rankCorrelation, -1, 1e-15);
  EXPECT_TRUE(m.finite);
}

TEST(Metrics, TiesGoByIndex) {
  Vector p = {1, 3, 3, 1}, q = {3, 1, 1, 3};
  TokenMetrics m = compareLogits(p, q);
  EXPECT_EQ(m.baselineToken, 1);
  EXPECT_EQ(m.token, 0);
  // R(p) = (0, 2, 3, 1), R(q) = (2, 0, 1, 3): 1 − 6·16/60.
  EXPECT_NEAR(m.rankCorrelation, -0.6, 1e-15);
  // Negative zero equals zero.
  Vector a = {0.0, -0.0, 0.0}, b = {-0.0, 0.0, -0.0};
  EXPECT_EQ(compareLogits(a, b).rankCorrelation, 1);
}

TEST(Metrics, EqualLogits) {
  Random random(60);
  Vector p = gaussian(random, 1000, 5);
  TokenMetrics m = compareLogits(p, p);
  EXPECT_TRUE(m.match && m.finite);
  EXPECT_EQ(m.linf, 0);
  EXPECT_EQ(m.totalVariation, 0);
  EXPECT_EQ(m.hellinger, 0);
  EXPECT_EQ(m.top1Difference, 0);
  EXPECT_EQ(m.rankCorrelation, 1);
}

/// R and Pearson's correlation, as defined in the paper.
static double plainRankCorrelation(const Vector &p, const Vector &q) {
  size_t size = p.size();
  auto rank = [&](const Vector &v, size_t i) {
    double below = 0;
    for (size_t j = 0; j < size; ++j)
      below += std::make_pair(v[j], j) < std::make_pair(v[i], i);
    return below;
  };
  double mean = (size - 1) / 2.0, covariance = 0, varianceP = 0, varianceQ = 0;
  for (size_t i = 0; i < size; ++i) {
    double a = rank(p, i) - mean, b = rank(q, i) - mean;
    covariance += a * b;
    varianceP += a * a;
    varianceQ += b * b;
  }
  return covariance / std::sqrt(varianceP * varianceQ);
}

TEST(Metrics, RankCorrelationIsThePapers) {
  Random random(61);
  for (int trial = 0; trial < 30; ++trial) {
    int64_t size = uniformInt(random, 2, 200);
    Vector p = gaussian(random, size, 3), q = p;
    for (double &value : q)
      value += uniform(random, -2, 2);
    if (trial % 2) // many ties
      for (Vector *v : {&p, &q})
        for (double &value : *v)
          value = std::round(value);
    double expected = plainRankCorrelation(p, q);
    EXPECT_NEAR(compareLogits(p, q).rankCorrelation, expected, 1e-12);
    std::vector<float> pf(p.begin(), p.end()), qf(q.begin(), q.end());
    EXPECT_NEAR(compareLogits(pf, qf).rankCorrelation, expected, 1e-12);
  }
}

TEST(Metrics, LargeLogitsDoNotOverflow) {
  TokenMetrics m = compareLogits(Vector{1e4, 0, -1e4}, Vector{0, 1e4, -1e4});
  EXPECT_EQ(m.totalVariation, 1);
  EXPECT_EQ(m.hellinger, 1);
  EXPECT_EQ(m.top1Difference, 1);
  EXPECT_EQ(m.linf, 1e4);
}

TEST(Metrics, TokensRuledOut) {
  TokenMetrics m = compareLogits(Vector{-inf, 1, 2}, Vector{-inf, 1, 2});
  EXPECT_TRUE(m.match && m.finite);
  EXPECT_EQ(m.linf, 0);
  m = compareLogits(Vector{-inf, 1, 2}, Vector{0, 1, 2});
  EXPECT_EQ(m.linf, inf);
  EXPECT_TRUE(m.finite);
}

TEST(Metrics, WithoutADistributionEverythingIsAtItsWorst) {
  Vector good = {1, 2};
  for (Vector bad : {Vector{NAN, 2}, Vector{inf, 2}, Vector{-inf, -inf}, Vector{}, Vector{1, 2, 3}})
    for (bool first : {false, true}) {
      TokenMetrics m = first ? compareLogits(bad, good) : compareLogits(good, bad);
      EXPECT_FALSE(m.finite);
      EXPECT_FALSE(m.match);
      EXPECT_EQ(m.linf, inf);
      EXPECT_EQ(m.totalVariation, 1);
      EXPECT_EQ(m.hellinger, 1);
      EXPECT_EQ(m.top1Difference, 1);
      EXPECT_EQ(m.rankCorrelation, -1);
    }
  EXPECT_EQ(argmax(Vector{NAN, 1, 2}), 2);
  EXPECT_EQ(argmax(Vector{}), -1);
}

TEST(Metrics, LargestVocabularyIsFast) {
  Random random(62);
  std::vector<float> p, q;
  for (double value : gaussian(random, 262144, 4)) {
    p.push_back(value);
    q.push_back(value + uniform(random, -1e-5, 1e-5));
  }
  auto start = std::chrono::steady_clock::now();
  TokenMetrics m = compareLogits(p, q);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GT(m.rankCorrelation, 0.999999);
  RecordProperty("milliseconds", std::to_string(1e3 * seconds.count()));
  // A quadratic algorithm would take minutes; the limit leaves room for a loaded machine.
  EXPECT_LT(seconds.count(), 2);
}
