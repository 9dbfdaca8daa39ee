#include "ctxc/Numerics/KernelABI.h"

#include "Problems.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {
struct Floats {
  std::vector<float> g, m, data, target, n, delta;
  int64_t counts[2] = {0, 0};
};
} // namespace

/// The steps of a kernel: invert, apply a float32 rank-1 patch, normalise, solve.
static void runKernel(int32_t update, Floats &f, float eps) {
  int64_t d = f.g.size();
  std::vector<double> scratch(scratchDoubles(d) + 1, 0);
  scratch.back() = 12345;
  f.target.assign(d, 0), f.n.assign(d, 0), f.delta.assign(d, 0);
  ctxc_invert_rms_norm(update, d, eps, f.g.data(), f.m.data(), f.data.data(), f.target.data(),
                       scratch.data());
  float h = 0.7f, squares = 0;
  for (int64_t k = 0; k < d; ++k) {
    float u = (f.target[k] - f.data[k]) / (h * h);
    f.n[k] = f.data[k] + u * (h * h);
    squares += f.n[k] * f.n[k];
  }
  float divisor = std::sqrt(squares / d + eps);
  for (float &n : f.n)
    n /= divisor;
  ctxc_solve_scale(update, d, f.g.data(), f.m.data(), f.n.data(), f.delta.data(), f.counts,
                   scratch.data());
  EXPECT_EQ(scratch.back(), 12345); // not beyond its documented size
}

static Floats drawFloats(Random &random, int64_t d) {
  Floats f;
  for (std::vector<float> *vector : {&f.g, &f.m, &f.data})
    for (double value : gaussian(random, d))
      vector->push_back(value);
  return f;
}

TEST(KernelABI, ValuesOfTheUpdatesAreFixed) {
  EXPECT_EQ(int32_t(Update::Least), 0);
  EXPECT_EQ(int32_t(Update::Balanced), 1);
  EXPECT_EQ(int32_t(Update::Naive), 2);
  EXPECT_EQ(int32_t(Update::Stable), 3);
  EXPECT_EQ(int32_t(Update::Scaled), 4);
}

TEST(KernelABI, ExactToFloatRounding) {
  Random random(40);
  for (int64_t d : {1, 2, 3, 17, 640, 1152}) {
    Floats f = drawFloats(random, d);
    for (int32_t update : {0, 1, 2, 3}) {
      runKernel(update, f, 1e-6f);
      for (int64_t k = 0; k < d; ++k) {
        float patched = f.m[k] + f.delta[k];
        float slack = (std::fabs(f.m[k]) + std::fabs(f.delta[k])) * std::fabs(f.n[k]);
        EXPECT_NEAR(patched * f.n[k], f.g[k], 3e-7f * (slack + std::fabs(f.g[k])));
      }
      EXPECT_EQ(f.counts[1], 0);
    }
  }
}

TEST(KernelABI, AgreesWithDouble) {
  Random random(41);
  Floats f = drawFloats(random, 100);
  Vector g(f.g.begin(), f.g.end()), m(f.m.begin(), f.m.end()), data(f.data.begin(), f.data.end());
  for (Update update : allUpdates) {
    runKernel(int32_t(update), f, 1e-6f);
    Solution found = solve(update, g, m, data, double(1e-6f));
    for (int k = 0; k < 100; ++k)
      EXPECT_EQ(f.target[k], float(found.target[k]));
  }
}

TEST(KernelABI, CountsAccumulate) {
  float g[] = {0, 1, 1}, m[] = {1, 1, 1}, n[] = {0, 0, 1}, delta[3];
  int64_t counts[] = {10, 20};
  ctxc_solve_scale(0, 3, g, m, n, delta, counts, nullptr);
  EXPECT_EQ(counts[0], 11);
  EXPECT_EQ(counts[1], 21);
  EXPECT_EQ(delta[0], 0);
  EXPECT_EQ(delta[1], 1);
}

TEST(KernelABI, ComponentDrivenToZeroKeepsItsScale) {
  // `least` and `balanced` want n_k = 0 where g_k = 0, and reach it only up to rounding.
  Random random(42);
  Floats f = drawFloats(random, 640);
  f.g[5] = f.g[77] = 0;
  for (int32_t update : {0, 1}) {
    f.counts[0] = 0;
    runKernel(update, f, 1e-6f);
    EXPECT_EQ(f.delta[5], 0);
    EXPECT_EQ(f.delta[77], 0);
    EXPECT_EQ(f.counts[0], 2);
  }
}

TEST(KernelABI, FiniteAtExtremeMagnitudes) {
  Random random(43);
  const float sizes[] = {0, 1e-45f, 1e-30f, 1, 1e30f, 3e38f};
  for (float sizeG : sizes)
    for (float sizeM : sizes)
      for (float sizeData : sizes)
        for (int32_t update = -1; update < 6; ++update) {
          Floats f = drawFloats(random, 8);
          for (int k = 0; k < 8; ++k) {
            f.g[k] = sizeG * std::tanh(f.g[k]);
            f.m[k] = (k % 2 ? sizeM : 1) * std::tanh(f.m[k]);
            f.data[k] = sizeData * std::tanh(f.data[k]);
          }
          std::vector<double> scratch(scratchDoubles(8));
          std::vector<float> target(8), delta(8);
          ctxc_invert_rms_norm(update, 8, 1e-6f, f.g.data(), f.m.data(), f.data.data(),
                               target.data(), scratch.data());
          ctxc_solve_scale(update, 8, f.g.data(), f.m.data(), target.data(), delta.data(), f.counts,
                           scratch.data());
          for (int k = 0; k < 8; ++k)
            EXPECT_TRUE(std::isfinite(target[k]) && std::isfinite(delta[k]));
        }
}

TEST(KernelABI, InputThatIsNotFiniteComesBackAsItIs) {
  float g[] = {NAN, 1}, m[] = {1, 1}, data[] = {2, 3}, target[2];
  double scratch[scratchDoubles(2)];
  for (int32_t update = 0; update < 5; ++update) {
    ctxc_invert_rms_norm(update, 2, 1e-6f, g, m, data, target, scratch);
    EXPECT_EQ(target[0], 2);
    EXPECT_EQ(target[1], 3);
  }
}

TEST(KernelABI, ZeroVectorsCountByTheChangeThatTheyServe) {
  const float data[] = {0, 0, 1, 0, 0, 0}, change[] = {0, 0, 0, 5, 0, 0, 0, 0, 1};
  int64_t counts[2] = {10, 20};
  ctxc_rows_count_unserved(3, 2, 3, data, change, counts);
  EXPECT_EQ(counts[0], 11); // the first vector, whose change is zero
  EXPECT_EQ(counts[1], 21); // the third
  // Kernels divide by the square of a length, which underflows before the entries do.
  const float tiny[] = {1e-30f, -1e-25f};
  int64_t zeros[2] = {};
  ctxc_rows_count_unserved(1, 2, 1, tiny, &data[2], zeros);
  ctxc_rows_count_zeros(/*elements=*/0, 1, 2, tiny, zeros);
  EXPECT_EQ(zeros[1], 2);
  ctxc_rows_count_zeros(/*elements=*/1, 1, 2, tiny, zeros);
  EXPECT_EQ(zeros[1], 2);
  const int32_t a[] = {1, 2, 3, 4}, b[] = {1, 3, 2, 4};
  ctxc_rows_count_different(2, 2, a, b, counts);
  EXPECT_EQ(counts[1], 23);
}
