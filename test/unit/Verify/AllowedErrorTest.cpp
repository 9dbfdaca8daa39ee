// What roundings allow, and that a verification fails beyond it, whatever the tokens.
#include "ctxc/Verify/AllowedError.h"
#include "FakeExecutor.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::testing;

namespace {

/// Sizes of a run whose layers' outputs are `outputs`.
StreamSizes sizesOf(std::vector<std::vector<double>> outputs) {
  StreamSizes sizes;
  LayerObserver observer = sizes.observer({});
  for (size_t layer = 0; layer < outputs.size(); ++layer)
    observer(int64_t(layer), outputs[layer], 1);
  return sizes;
}

TEST(AllowedError, CarriesEachLayersErrorToTheLogits) {
  constexpr double u = float32UnitRoundoff;
  StreamSizes sizes = sizesOf({{3, 4, 0, 0}, {0, 0, 6, 8}});
  EXPECT_EQ(sizes.width(), 4);
  EXPECT_DOUBLE_EQ(sizes.norm(0), 5);
  EXPECT_DOUBLE_EQ(sizes.norm(1), 10);
  // 2 √4 · 7 · (u + (u + 1e-6/5) + (u + 1e-5/10))
  EXPECT_NEAR(allowedLinf(7, {1e-6, 1e-5}, sizes, {u, u}), 28 * (3 * u + 1.2e-6), 1e-12);
  // In bfloat16 each rounding is 2¹⁶ times as large.
  EXPECT_NEAR(allowedLinf(7, {1e-6, 1e-5}, sizes, {bfloat16UnitRoundoff, bfloat16UnitRoundoff}),
              0x1p16 * 28 * (3 * u + 1.2e-6), 1e-8);
  // Where only the patched weights are rounded, what else is computed is not.
  EXPECT_NEAR(allowedLinf(7, {1e-6, 1e-5}, sizes, {u, bfloat16UnitRoundoff}),
              28 * (3 * u + 0x1p16 * 1.2e-6), 1e-8);
  // Excluded tokens have no logits.
  EXPECT_EQ(largestMagnitude({1, -INFINITY, -7}), 7);
  EXPECT_EQ(largestMagnitude({}), 0);
  EXPECT_NEAR(allowedLinf(7, {0, 0}, sizes, {u, u}), 28 * 3 * u, 1e-12);
}

TEST(AllowedError, WhatIsNotPredictedIsNotBounded) {
  StreamSizes sizes = sizesOf({{0, 0}});
  EXPECT_FALSE(std::isfinite(allowedLinf(2, {1e-6}, sizes, {})));
  EXPECT_FALSE(std::isfinite(allowedLinf(2, {INFINITY}, sizes, {})));
  EXPECT_TRUE(std::isfinite(allowedLinf(2, {0}, sizes, {})));
}

/// What a layer leaves of a larger stream has the roundings of that stream.
TEST(AllowedError, ASmallDifferenceHasTheRoundingsOfWhatItIsTheDifferenceOf) {
  constexpr double u = float32UnitRoundoff;
  StreamSizes sizes;
  LayerObserver observer = sizes.observer({});
  observer(-1, {6, 8, 0, 0}, 1);
  observer(0, {1e-7, 0, 0, 0}, 1);
  observer(1, {0, 0, 1e-9, 0}, 1);
  observer(2, {0, 20, 0, 0}, 1);
  EXPECT_NEAR(allowedLinf(1e-9, {0, 0, 0}, sizes, {u, u}), 4e-9 * u * (1 + 1e8 + 1e10 + 1), 1e-15);
}

/// A layer's output may be zero in one of two runs, and a rounding in the other.
TEST(AllowedError, NormsAreThoseOfTheRunWhereTheyAreLarger) {
  constexpr double u = float32UnitRoundoff;
  StreamSizes sizes = sizesOf({{3, 4}, {0, 0}});
  EXPECT_NEAR(allowedLinf(1, {0, 0}, sizes, {u, u}), 2 * std::sqrt(2) * 3 * u, 1e-12);
  LayerObserver second = sizes.observer({});
  second(0, {3, 0}, 1);
  second(1, {1e-7, 0}, 1);
  EXPECT_DOUBLE_EQ(sizes.norm(0), 5);
  EXPECT_DOUBLE_EQ(sizes.norm(1), 1e-7);
  EXPECT_NEAR(allowedLinf(1, {0, 0}, sizes, {u, u}), 2 * std::sqrt(2) * (2 + 5e7) * u, 1e-9);
  sizes.clear();
  EXPECT_EQ(sizes.norm(0), 0);
}

TEST(AllowedError, ObserversAreChained) {
  StreamSizes sizes;
  int seen = 0;
  sizes.observer([&](int64_t, llvm::ArrayRef<double>, int64_t) { ++seen; })(0, {1.0}, 1);
  EXPECT_EQ(seen, 1);
}

struct Beyond : ::testing::Test {
  FakeExecutor executor;
  FakeNorms norms;
  RunRequest request{{3, 1, 4, 1}, {}, 0, false, nullptr, {}};
  VerifySummary run() {
    auto result = verify(executor, request, 2, norms, [](const VerifyStep &) {});
    EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
    return result ? summarize(result->steps) : VerifySummary();
  }
};

TEST_F(Beyond, RoundingsAreAllowed) {
  executor.error = 1e-9;
  VerifySummary summary = run();
  EXPECT_GT(summary.worstLinf, 0);
  EXPECT_GT(summary.nearestAllowed, summary.nearestLinf);
  EXPECT_LT(summary.nearestAllowed, 1e-4);
  EXPECT_EQ(summary.beyond, 0);
  EXPECT_TRUE(summary.verified());
}

TEST_F(Beyond, MoreIsNotThoughEveryTokenIsTheSame) {
  executor.error = 1e-3;
  VerifySummary summary = run();
  EXPECT_EQ(summary.matches, 2);
  EXPECT_EQ(summary.beyond, 2);
  EXPECT_LT(summary.nearestAllowed, summary.nearestLinf);
  EXPECT_FALSE(summary.verified());
  // Where weights are rounded to bfloat16, so is what is allowed.
  request.roundoffs.patch = bfloat16UnitRoundoff;
  EXPECT_TRUE(run().verified());
}

/// A patch that gives every logit, and is made of roundings: divided by nearly nothing, it is far
/// larger than its parameter.
TEST_F(Beyond, APatchThatIsTooLargeShowsNothing) {
  VerifySummary summary = run();
  EXPECT_TRUE(summary.verified());
  EXPECT_EQ(whyTooLarge(summary.largestPatch), "");
  for (double largest : {1e8, 1e68, HUGE_VAL, std::nan("")}) {
    summary.largestPatch.largest = largest;
    EXPECT_FALSE(summary.verified()) << largest;
    EXPECT_NE(whyTooLarge(summary.largestPatch).find("more than 1e+07"), std::string::npos);
  }
  // One step of several suffices, whatever comes before and after it.
  auto result = verify(executor, request, 2, norms, [](const VerifyStep &) {});
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  for (double largest : {1e9, std::nan("")}) {
    std::vector<VerifyStep> steps = result->steps;
    steps.front().norm.largest = largest;
    EXPECT_FALSE(summarize(steps).verified());
    std::swap(steps.front(), steps.back());
    EXPECT_FALSE(summarize(steps).verified());
  }
}

TEST(PatchNorm, IsLargestForOneParameter) {
  FakeNorms norms;
  Patch patch;
  auto add = [&](double number) {
    patch.parameters.push_back(
        {"layers.1.bias", ParameterPatch::Kind::Delta, {1}, {}, {}, {number}});
    auto table = measure(patch, 2, norms);
    EXPECT_TRUE(bool(table)) << llvm::toString(table.takeError());
    return table->total.largest;
  };
  double own = std::sqrt(*norms.squaredNorm("layers.1.bias"));
  EXPECT_NEAR(add(own), 1, 1e-12);
  EXPECT_NEAR(add(1e9 * own), 1e9, 1);
  EXPECT_NEAR(add(own), 1e9, 1);
  EXPECT_TRUE(std::isnan(add(std::nan(""))));
}

TEST_F(Beyond, NoPredictionAllowsMoreThanTheContextChanges) {
  request.tokens = {3, 4, 1}; // the context's sum is 0, modulo 7
  executor.error = 1e-3;
  request.roundoffs.patch = bfloat16UnitRoundoff;
  VerifySummary summary = run();
  EXPECT_LT(summary.nearestAllowed, 1e-5);
  EXPECT_FALSE(summary.verified());
}

TEST_F(Beyond, PatchesOfPositionsAndOfFilesAreHeldToIt) {
  executor.error = 1e-3;
  request.positions = {2, 3};
  auto each = verifyEach(executor, request, norms, [](const VerifyStep &) {});
  ASSERT_TRUE(bool(each)) << llvm::toString(each.takeError());
  EXPECT_EQ(summarize(each->steps).beyond, 2);
  request.positions.clear();

  RunTimes times;
  auto made = makePatch(executor, request, times);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  auto stored = verifyPatch(executor, request, made->patch, norms);
  ASSERT_TRUE(bool(stored)) << llvm::toString(stored.takeError());
  EXPECT_EQ(summarize(stored->steps).matches, 1);
  EXPECT_FALSE(summarize(stored->steps).verified());
}

} // namespace
