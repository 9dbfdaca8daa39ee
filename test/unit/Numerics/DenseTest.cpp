// Products and solves against plain loops, at sizes around those of tiles, vectors and blocks.
#include "ctxc/Numerics/Dense.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>
#include <vector>

using namespace ctxc;

namespace {

template <typename T> std::vector<T> randomNumbers(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<T> normal;
  std::vector<T> numbers(count);
  for (T &x : numbers)
    x = normal(engine);
  return numbers;
}

void inOne(int64_t count, llvm::function_ref<void(int64_t, int64_t)> body) { body(0, count); }
void inPieces(int64_t count, llvm::function_ref<void(int64_t, int64_t)> body) {
  for (int64_t i = count; i-- > 0;)
    body(i, i + 1);
}

template <typename T> void expectProducts(double tolerance) {
  for (int64_t m : {1, 4, 35})
    for (int64_t n : {1, 5, 33})
      for (int64_t k : {1, 7, 16, 100, 2100}) {
        auto a = randomNumbers<T>(m * k, 1), b = randomNumbers<T>(n * k, 2);
        std::vector<double> c(m * n), again(m * n);
        multiplyTransposed(a.data(), m, b.data(), n, k, c.data(), inOne);
        multiplyTransposed(a.data(), m, b.data(), n, k, again.data(), inPieces);
        EXPECT_EQ(c, again); // whatever the threads
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p)
              sum += double(a[i * k + p]) * b[j * k + p];
            EXPECT_NEAR(c[i * n + j], sum, tolerance * std::sqrt(k)) << m << " " << n << " " << k;
          }
      }
}

/// a bᵀ is symmetric where b is a times a diagonal.
template <typename T> void expectSymmetricProducts() {
  for (int64_t n : {1, 5, 33, 100, 150})
    for (int64_t k : {1, 16, 300}) {
      auto a = randomNumbers<T>(n * k, 1), b = a;
      for (size_t i = 0; i < b.size(); ++i)
        b[i] *= 1 << (i % k % 3);
      std::vector<double> c(n * n, NAN), pieces(n * n, NAN), whole(n * n);
      multiplySymmetric(a.data(), b.data(), n, k, c.data(), inOne);
      multiplySymmetric(a.data(), b.data(), n, k, pieces.data(), inPieces);
      multiplyTransposed(a.data(), n, b.data(), n, k, whole.data(), inOne);
      EXPECT_EQ(c, pieces);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          EXPECT_EQ(c[i * n + j], whole[i * n + j]) << n << " " << k;
          EXPECT_EQ(c[j * n + i], c[i * n + j]);
        }
    }
}

} // namespace

TEST(Dense, MultipliesFloatsInFloat) {
  for (int64_t m : {1, 7, 8, 19})
    for (int64_t n : {1, 31, 32, 33, 70})
      for (int64_t k : {1, 15, 16, 50}) {
        auto a = randomNumbers<float>(m * k, 1), b = randomNumbers<float>(n * k, 2);
        std::vector<float> transposed(n * k), c(m * n, NAN), pieces(m * n, NAN), plain(m * n, NAN);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t p = 0; p < k; ++p)
            transposed[p * n + j] = b[j * k + p];
        multiplyTransposed(a.data(), m, b.data(), n, k, c.data(), inOne);
        multiplyTransposed(a.data(), m, b.data(), n, k, pieces.data(), inPieces);
        multiply(a.data(), m, transposed.data(), n, k, plain.data(), inPieces);
        EXPECT_EQ(c, pieces);
        EXPECT_EQ(c, plain);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p)
              sum += double(a[i * k + p]) * b[j * k + p];
            EXPECT_NEAR(c[i * n + j], sum, 1e-6 * k) << m << " " << n << " " << k;
          }
      }
}

TEST(Dense, MultipliesFloats) { expectProducts<float>(2e-6); }
TEST(Dense, MultipliesDoubles) { expectProducts<double>(1e-14); }

TEST(Dense, MultipliesDoublesWithFloats) {
  for (int64_t m : {1, 8, 19})
    for (int64_t n : {1, 24, 47, 100})
      for (int64_t k : {1, 16, 300}) {
        auto a = randomNumbers<double>(m * k, 1);
        auto b = randomNumbers<float>(k * n, 2);
        std::vector<double> transposed(n * k), c(m * n, NAN), pieces(m * n, NAN), expected(m * n);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t p = 0; p < k; ++p)
            transposed[j * k + p] = b[p * n + j];
        multiplyByFloats(a.data(), m, b.data(), n, k, c.data(), inOne);
        multiplyByFloats(a.data(), m, b.data(), n, k, pieces.data(), inPieces);
        multiplyTransposed(a.data(), m, transposed.data(), n, k, expected.data(), inOne);
        EXPECT_EQ(c, pieces);
        EXPECT_EQ(c, expected) << m << " " << n << " " << k;
      }
}

TEST(Dense, MultipliesToSymmetricMatrices) {
  expectSymmetricProducts<float>();
  expectSymmetricProducts<double>();
}

TEST(Dense, SolvesByCholesky) {
  for (int64_t n : {1, 3, 63, 64, 65, 130}) {
    // Positive definite: a product with itself, and something on the diagonal.
    auto root = randomNumbers<double>(n * n, 3);
    std::vector<double> a(n * n);
    multiplyTransposed(root.data(), n, root.data(), n, n, a.data(), inOne);
    for (int64_t i = 0; i < n; ++i)
      a[i * n + i] += 1;
    std::vector<double> factor = a, pieces = a;
    ASSERT_TRUE(factorCholesky(factor.data(), n, inOne));
    ASSERT_TRUE(factorCholesky(pieces.data(), n, inPieces));
    EXPECT_EQ(factor, pieces);
    const int64_t count = 37;
    auto rows = randomNumbers<double>(count * n, 4), solved = rows;
    solveCholesky(factor.data(), n, solved.data(), count, inPieces);
    std::vector<double> back(count * n);
    multiplyTransposed(solved.data(), count, a.data(), n, n, back.data(), inOne);
    for (size_t i = 0; i < rows.size(); ++i)
      ASSERT_NEAR(back[i], rows[i], 1e-9) << n;
  }
}

TEST(Dense, SaysWhatHasNoFactor) {
  for (int64_t n : {2, 70}) {
    std::vector<double> a(n * n);
    for (int64_t i = 0; i < n; ++i)
      a[i * n + i] = i + 1 < n ? 1 : -1;
    EXPECT_FALSE(factorCholesky(a.data(), n, inOne));
  }
}
