#include "ctxc/Numerics/Pooling.h"
#include "ctxc/Numerics/StateMetrics.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace ctxc;

namespace {

TEST(Pooling, EachKindByHand) {
  const std::vector<double> rows = {1, -2, 3, 4, 5, 0}; // of three tokens
  auto pooled = [&](PoolingKind kind) { return pool({{kind}}, rows, 2); };
  EXPECT_EQ(pooled(PoolingKind::First), (std::vector<double>{1, -2}));
  EXPECT_EQ(pooled(PoolingKind::Last), (std::vector<double>{5, 0}));
  EXPECT_EQ(pooled(PoolingKind::Largest), (std::vector<double>{5, 4}));
  EXPECT_EQ(pooled(PoolingKind::Mean), (std::vector<double>{3, 2.0 / 3}));
  EXPECT_EQ(pooled(PoolingKind::MeanOfRoot),
            (std::vector<double>{9 / std::sqrt(3.0), 2 / std::sqrt(3.0)}));
  EXPECT_EQ(pooled(PoolingKind::WeightedMean), (std::vector<double>{22.0 / 6, 1}));
}

TEST(Pooling, SeveralKindsAreJoinedAndScaledTogether) {
  Pooling pooling{{PoolingKind::First, PoolingKind::Last}, /*normalize=*/true};
  std::vector<double> both = pool(pooling, {3.0, 0.0, 0.0, 4.0}, 2);
  EXPECT_EQ(both, (std::vector<double>{0.6, 0, 0, 0.8}));
  EXPECT_EQ(describe(pooling), "the first token's and the last token's, scaled to length 1");
  EXPECT_EQ(pool(pooling, {0.0, 0.0}, 1), (std::vector<double>{0, 0}));
}

TEST(StateMetrics, LargestDifferenceAndCosine) {
  TokenMetrics metrics = compareStates({3.0, 4.0}, {3.0, 4.5});
  EXPECT_EQ(metrics.linf, 0.5);
  EXPECT_TRUE(metrics.match && metrics.finite);
  EXPECT_EQ(metrics.token, -1);
  EXPECT_EQ(cosineOf({1.0, 0.0}, {0.0, 2.0}), 0);
  EXPECT_EQ(cosineOf({1.0, 2.0}, {-2.0, -4.0}), -1);
  EXPECT_EQ(cosineOf({0.0}, {0.0}), 1);
  for (double bad : {double(NAN), double(INFINITY)}) {
    metrics = compareStates({1.0}, {bad});
    EXPECT_TRUE(std::isinf(metrics.linf));
    EXPECT_FALSE(metrics.match || metrics.finite);
  }
  EXPECT_FALSE(compareStates({1.0, 2.0}, {1.0}).finite);
}

} // namespace
