// The distance from a sum of convex sets, compared with closed forms and with sampling.
#include "lib/Evidence/ConvexDistance.h"
#include "lib/Evidence/Random.h"
#include <Eigen/LU>
#include <gtest/gtest.h>

using namespace ctxc;

namespace {

Vector draw(Random &random, int64_t n) { return random.normal(1, n).row(0).transpose(); }

Map dense(const Eigen::MatrixXd &m) { return m.sparseView(); }

ConvexSet box(double low, double high, int64_t n) {
  ConvexSet set;
  set.low = Vector::Constant(n, low);
  set.high = Vector::Constant(n, high);
  return set;
}

ConvexSet ball(double radius, int64_t n) {
  ConvexSet set;
  set.kind = ConvexSet::Ball;
  set.radius = radius;
  set.normals.resize(n, 0);
  return set;
}

/// The sum of the sets c + A s over all terms.
ConvexSum sumOf(int64_t n, std::vector<ConvexTerm> terms) {
  ConvexSum sum;
  sum.constant = Vector::Zero(n);
  sum.terms.append(terms.begin(), terms.end());
  return sum;
}

const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(6, 6);

void expectDistance(const ConvexSum &sum, const Vector &target, double wanted) {
  Separation found = separate(sum, target);
  EXPECT_NEAR(found.distance, wanted, 1e-9 * (1 + wanted));
  EXPECT_NEAR(found.attained, wanted, 1e-9 * (1 + wanted));
  if (wanted == 0)
    return;
  EXPECT_NEAR(found.direction.norm(), 1, 1e-12);
  EXPECT_NEAR(found.direction.dot(target) - sum.support(found.direction), found.distance, 1e-12);
}

TEST(ConvexDistance, OfABall) {
  Random random(1);
  Vector t = draw(random, 6);
  expectDistance(sumOf(6, {{dense(one), ball(0.5, 6)}}), t, t.norm() - 0.5);
  expectDistance(sumOf(6, {{dense(one), ball(100, 6)}}), t, 0);
}

TEST(ConvexDistance, OfABallInAHyperplane) {
  // The image of a layer norm: vectors of mean zero.
  Random random(2);
  Vector t = draw(random, 6), ones = Vector::Constant(6, 1 / std::sqrt(6.0));
  ConvexSet set = ball(0.7, 6);
  set.normals = ones;
  double off = ones.dot(t), inside = (t - off * ones).norm();
  expectDistance(sumOf(6, {{dense(one), set}}), t, std::hypot(off, inside - 0.7));
}

TEST(ConvexDistance, OfAnEllipsoid) {
  // The image of a norm with a fixed scale m, from its secular equation: the nearest point is t_i
  // m_i² / (m_i² + μ) with Σ (t_i m_i / (m_i² + μ))² = radius².
  Random random(3);
  Vector t = 3 * draw(random, 6), m = draw(random, 6);
  double low = 0, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    double mu = (low + high) / 2;
    double squares = 0;
    for (int k = 0; k < 6; ++k)
      squares += std::pow(t[k] * m[k] / (m[k] * m[k] + mu), 2);
    (squares > 1 ? low : high) = mu;
  }
  double squares = 0;
  for (int k = 0; k < 6; ++k)
    squares += std::pow(t[k] - t[k] * m[k] * m[k] / (m[k] * m[k] + low), 2);
  expectDistance(sumOf(6, {{dense(m.asDiagonal().toDenseMatrix()), ball(1, 6)}}), t,
                 std::sqrt(squares));
}

TEST(ConvexDistance, OfABoxAndOfAHalfSpace) {
  Vector t(6);
  t << 3, -4, 0.5, 1, -1, 0;
  expectDistance(sumOf(6, {{dense(one), box(-1, 1, 6)}}), t, std::sqrt(4 + 9));
  expectDistance(sumOf(6, {{dense(one), box(0, HUGE_VAL, 6)}}), t, std::sqrt(16 + 1));
  expectDistance(sumOf(6, {{dense(-one), box(0, HUGE_VAL, 6)}}), t, std::sqrt(9 + 0.25 + 1));
}

TEST(ConvexDistance, OfASubspaceAndOfEverything) {
  Random random(4);
  Eigen::MatrixXd W = random.normal(6, 2);
  Vector t = draw(random, 6);
  Vector rest = t - W * (W.transpose() * W).inverse() * (W.transpose() * t);
  expectDistance(sumOf(6, {{dense(W), ConvexSet::free(2)}}), t, rest.norm());
  expectDistance(sumOf(6, {{dense(random.normal(6, 6)), ConvexSet::free(6)}}), t, 0);
  expectDistance(sumOf(6, {}), t, t.norm());
}

TEST(ConvexDistance, OfSumsIsNotBeatenByTheirPoints) {
  for (int seed = 10; seed < 30; ++seed) {
    Random random(seed);
    std::vector<ConvexTerm> terms = {{dense(random.normal(6, 6)), ball(1, 6)},
                                     {dense(random.normal(6, 4)), box(-1, 0.5, 4)},
                                     {dense(random.normal(6, 2)), ConvexSet::free(2)}};
    if (seed % 2)
      terms.push_back({dense(random.normal(6, 1)), box(0, HUGE_VAL, 1)});
    ConvexSum sum = sumOf(6, terms);
    sum.constant = draw(random, 6);
    Vector t = 20 * draw(random, 6);
    Separation found = separate(sum, t);
    EXPECT_GT(found.distance, 0) << seed;
    EXPECT_NEAR(found.attained, found.distance, 1e-4 * found.attained) << seed;
    for (int i = 0; i < 200; ++i) {
      Vector y = sum.constant;
      for (const ConvexTerm &term : terms)
        y += term.map * term.set.project(3 * draw(random, term.map.cols()));
      EXPECT_GE((t - y).norm(), found.distance * (1 - 1e-12)) << seed;
    }
  }
}

} // namespace
