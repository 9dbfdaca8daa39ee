// Inner products and distances computed from factors, compared with those of the matrices
// themselves.
#include "ctxc/Inspect/PatchDistance.h"
#include "ctxc/Verify/PatchNorms.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace ctxc;

namespace {

using Kind = ParameterPatch::Kind;

class PatchDistance : public ::testing::Test {
protected:
  std::mt19937 random{7};

  std::vector<double> vector(size_t size) {
    std::vector<double> result(size);
    for (double &x : result)
      x = std::normal_distribution<>()(random);
    return result;
  }
  ParameterPatch rank1(std::string name, int64_t m = 5, int64_t n = 4) {
    return {std::move(name), Kind::Rank1, {m, n}, vector(m), vector(n), {}};
  }
  ParameterPatch delta(std::string name, int64_t n = 6) {
    return {std::move(name), Kind::Delta, {n}, {}, {}, vector(n)};
  }
};

/// The full change, entry by entry.
std::vector<double> materialized(const ParameterPatch &patch) {
  if (patch.kind == Kind::Delta)
    return patch.delta;
  std::vector<double> result;
  for (double u : patch.u)
    for (double v : patch.v)
      result.push_back(u * v);
  return result;
}

double product(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

std::vector<double> minus(std::vector<double> a, const std::vector<double> &b) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] -= b[i];
  return a;
}

TEST_F(PatchDistance, ProductsOfFactorsAreThoseOfMatrices) {
  for (int i = 0; i < 20; ++i)
    for (auto [a, b] : {std::pair(rank1("w"), rank1("w")), std::pair(delta("m"), delta("m"))}) {
      EXPECT_NEAR(innerProduct(a, b), product(materialized(a), materialized(b)), 1e-12);
      std::vector<double> difference = minus(materialized(a), materialized(b));
      EXPECT_NEAR(squaredDistance(a, b), product(difference, difference), 1e-11);
    }
}

TEST_F(PatchDistance, FactorsOfAnotherScaleAndSignAreTheSameMatrix) {
  ParameterPatch a = rank1("w"), b = a;
  for (double &u : b.u)
    u *= -1e3;
  for (double &v : b.v)
    v /= -1e3;
  EXPECT_NEAR(squaredDistance(a, b), 0, 1e-28);
}

TEST_F(PatchDistance, KeepsItsDigitsWherePatchesAreClose) {
  ParameterPatch a = rank1("w"), b = a;
  b.u[2] += 1e-10;
  double expected = 1e-10 * std::sqrt(product(a.v, a.v));
  EXPECT_NEAR(std::sqrt(squaredDistance(a, b)) / expected, 1, 1e-5);
}

TEST_F(PatchDistance, OfAZeroChangeIsTheOther) {
  ParameterPatch a = rank1("w"), zero = a;
  std::fill(zero.v.begin(), zero.v.end(), 0.0);
  EXPECT_NEAR(squaredDistance(a, zero), squaredNorm(a), 1e-12);
  EXPECT_NEAR(squaredDistance(zero, a), squaredNorm(a), 1e-12);
}

TEST_F(PatchDistance, MatricesAndVectorsApartAndLayerByLayer) {
  Patch a{{rank1("0.w"), delta("0.m"), rank1("1.w")}},
      b{{rank1("0.w"), delta("0.m"), rank1("1.w")}};
  auto layerOf = [](llvm::StringRef name) { return int64_t(name[0] - '0'); };
  PatchCosines found = cosines(a, b, 3, layerOf);
  auto angle = [&](std::initializer_list<int> which) {
    double ab = 0, aa = 0, bb = 0;
    for (int i : which) {
      std::vector<double> x = materialized(a.parameters[i]), y = materialized(b.parameters[i]);
      ab += product(x, y), aa += product(x, x), bb += product(y, y);
    }
    return ab / std::sqrt(aa * bb);
  };
  EXPECT_NEAR(*found.total.matrix, angle({0, 2}), 1e-12);
  EXPECT_NEAR(*found.total.vector, angle({1}), 1e-12);
  EXPECT_NEAR(*found.layers[0].matrix, angle({0}), 1e-12);
  EXPECT_NEAR(*found.layers[1].matrix, angle({2}), 1e-12);
  EXPECT_FALSE(found.layers[1].vector.has_value());
  EXPECT_FALSE(found.layers[2].matrix.has_value());
  EXPECT_NEAR(*cosines(a, a, 3, layerOf).total.matrix, 1, 1e-15);
}

/// Experts: the patch of one token changes some of them, the next token's patch others.
TEST_F(PatchDistance, AParameterOfOneAloneCountsAsZeroInTheOther) {
  Patch a{{rank1("e.0"), rank1("e.1")}}, b{{a.parameters[1], rank1("e.2")}};
  OfBoth found = distance(a, b);
  EXPECT_NEAR(found.matrix, std::sqrt(squaredNorm(a.parameters[0]) + squaredNorm(b.parameters[1])),
              1e-12);
  EXPECT_EQ(found.vector, 0);
  auto noLayer = [](llvm::StringRef) { return int64_t(-1); };
  double shared = squaredNorm(a.parameters[1]);
  EXPECT_NEAR(*cosines(a, b, 1, noLayer).total.matrix,
              shared / std::sqrt((shared + squaredNorm(a.parameters[0])) *
                                 (shared + squaredNorm(b.parameters[1]))),
              1e-12);
}

} // namespace
