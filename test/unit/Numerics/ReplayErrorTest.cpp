#include "ctxc/Numerics/ReplayError.h"

#include "Problems.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::test;

TEST(ReplayError, HandComputed) {
  // target = data: n = (1, 1); each component has two rounding errors, relative to RMS 1.
  EXPECT_NEAR(predictedScaleReplayError({3, 4}, {2, 2}, {2, 2}, 0, 1), std::sqrt(2 * 25.0), 1e-14);
  // One component moves from −2 to 2: 4², and RMS² = 4, divided by 4.
  EXPECT_NEAR(predictedScaleReplayError({3, 0}, {2, 2}, {-2, 2}, 0, 1),
              3 * std::sqrt(1 + (4.0 + 16) / 4), 1e-14);
  EXPECT_NEAR(predictedRank1ReplayError({3, 4}, {6, 8}, -2, 0.5), 0.5 * (5 + 20), 1e-14);
}

TEST(ReplayError, DegenerateInputs) {
  EXPECT_EQ(predictedScaleReplayError({}, {}, {}, 0), 0);
  EXPECT_EQ(predictedScaleReplayError({1}, {0}, {0}, 0), 0);
  EXPECT_EQ(predictedScaleReplayError({1}, {0}, {1}, 0), INFINITY);
}

/// The patched block in float32 in another program: the patch is first added to the weights, and
/// each row is summed in steps of `step`.
static Vector replay(const std::vector<Vector> &W, const Vector &u, const Vector &h,
                     const Vector &scale, double eps, int step) {
  int64_t d = u.size(), width = h.size();
  double length = norm(h);
  std::vector<float> out(d);
  float squares = 0;
  for (int64_t k = 0; k < d; ++k) {
    float row = 0;
    for (int64_t i = 0; i < width; ++i) {
      int64_t j = i * step % width;
      float weight = float(W[k][j]) + float(u[k]) * float(h[j] / (length * length));
      row += weight * float(h[j]);
    }
    out[k] = row;
    squares += row * row;
  }
  float divisor = std::sqrt(squares / d + float(eps));
  Vector y(d);
  for (int64_t k = 0; k < d; ++k)
    y[k] = float(scale[k]) * (out[k] / divisor);
  return y;
}

TEST(ReplayError, PredictsAnotherPrograms) {
  Random random(70);
  constexpr int64_t d = 64, width = 101;
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<Vector> W;
    for (int64_t k = 0; k < d; ++k) {
      W.push_back(gaussian(random, width));
      for (double &weight : W.back())
        weight = float(weight);
    }
    Vector h = gaussian(random, width), m = gaussian(random, d), data(d, 0);
    for (double &value : h)
      value = float(value);
    for (int64_t k = 0; k < d; ++k)
      for (int64_t j = 0; j < width; ++j)
        data[k] += W[k][j] * h[j];
    Vector g = scaledNorm(m, data, 1e-6), shift = gaussian(random, d);
    for (int64_t k = 0; k < d; ++k)
      g[k] += shift[k];
    for (Update update : {Update::Least, Update::Balanced, Update::Naive, Update::Stable}) {
      Solution found = solve(update, g, m, data, 1e-6);
      Vector u(d), scale(d);
      for (int64_t k = 0; k < d; ++k) {
        u[k] = found.target[k] - data[k];
        scale[k] = m[k] + found.delta[k];
      }
      double squares = 0;
      for (int step : {1, 7, 50}) {
        Vector y = replay(W, u, h, scale, 1e-6, step);
        for (int64_t k = 0; k < d; ++k)
          squares += (y[k] - g[k]) * (y[k] - g[k]) / 3;
      }
      double predicted = predictedScaleReplayError(scale, found.target, data, 1e-6);
      EXPECT_LT(std::sqrt(squares), 12 * predicted) << stringifyUpdate(update);
      EXPECT_GT(std::sqrt(squares), predicted / 12) << stringifyUpdate(update);
    }
  }
}
