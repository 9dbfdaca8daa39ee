// Exponentials in vectors, beside the C library's.
#include "ctxc/Numerics/Softmax.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <vector>

using namespace ctxc;

TEST(Softmax, ExponentialsAreTheLibrarys) {
  const double shift = 12.5;
  std::vector<float> x;
  for (int k = 0; k < 100000; ++k)
    x.push_back(12.5 - k * 0.00734);
  for (float edge : {12.5f, 12.5f - 0x1p-20f, -694.4f, -694.6f, -700.0f, -1e30f,
                     -std::numeric_limits<float>::infinity()})
    x.push_back(edge);
  std::vector<double> found(x.size());
  double sum = exponentials(x.data(), x.size(), shift, found.data()), expected = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    double y = double(x[k]) - shift, exact = std::exp(y);
    if (y < -707)
      EXPECT_EQ(found[k], 0) << y;
    else
      EXPECT_NEAR(found[k], exact, 4.5e-16 * exact) << y;
    expected += exact;
  }
  EXPECT_NEAR(sum, expected, 1e-13 * expected);
  float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(exponentials(&nan, 1, 0, found.data())));
}

TEST(Softmax, ExponentialsOfFloatsAreTheLibrarys) {
  std::vector<float> x, shifts;
  for (int k = 0; k < 100003; ++k) {
    shifts.push_back(3 * std::sin(k));
    x.push_back(shifts[k] - k * 0.0009f);
  }
  x[5] = -std::numeric_limits<float>::infinity();
  std::vector<float> found = x;
  exponentiate(found.data(), shifts.data(), x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    const float y = x[k] - shifts[k], exact = y < -86 ? 0 : std::exp(double(y));
    EXPECT_NEAR(found[k], exact, 3.6e-7 * exact) << y;
  }
}

TEST(Softmax, SumsDifferences) {
  std::vector<float> a, b;
  std::vector<double> weights;
  double expected = 0;
  for (int k = 0; k < 1003; ++k) {
    weights.push_back(1.0 / (k + 1));
    a.push_back(std::sin(k));
    b.push_back(std::cos(3 * k));
    expected += weights[k] * (double(a[k]) - b[k]);
  }
  EXPECT_NEAR(sumOfDifferences(weights.data(), a.data(), b.data(), a.size()), expected, 1e-13);
  EXPECT_EQ(sumOfDifferences(weights.data(), a.data(), a.data(), a.size()), 0);
}
