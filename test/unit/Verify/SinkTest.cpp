#include "ctxc/Verify/Sink.h"
#include "ctxc/Verify/Replay.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

TEST(Sink, TheFirstTokenIsFarLongerThanTheMiddleOfTheOthers) {
  auto found = findSink({{1, 1, 1, 1}, {90, 1, 2, 3}, {30, 1, 3, 3}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layer, 1);
  EXPECT_EQ(found->times, 45);
}

TEST(Sink, NoneWhereAnotherIsLongOrTheFirstIsNearlyAsLong) {
  EXPECT_FALSE(findSink({{3, 1, 1, 1}, {2, 1, 1, 1}}));
  EXPECT_FALSE(findSink({{1, 90, 1, 1}}));
  EXPECT_FALSE(findSink(llvm::ArrayRef<std::vector<double>>()));
  EXPECT_FALSE(findSink({{90}}));
  EXPECT_FALSE(findSink({{90, 0, 0, 0}}));
  EXPECT_FALSE(findSink({{INFINITY, 1, 1, 1}}));
}

TEST(Replay, TheTypeOfTheActivationsScalesIt) {
  const double norms[] = {10, 2}, errors[] = {1e-6, 1e-6};
  ReplayError wide = replayErrorIn("f32", errors, norms);
  EXPECT_EQ(wide.layer, 1);
  EXPECT_DOUBLE_EQ(wide.error, 1e-6);
  EXPECT_DOUBLE_EQ(wide.relative, 5e-7);
  EXPECT_EQ(replayWarning("f32", wide), "");
  // 2¹⁶ times as much, and the roundings of the output, 2 · 2⁻⁸ · 2.
  ReplayError narrow = replayErrorIn("bf16", errors, norms);
  EXPECT_DOUBLE_EQ(narrow.error, 65536e-6 + 0x1p-6);
  EXPECT_DOUBLE_EQ(replayErrorIn("bf16", errors, norms, Sink{0, 150}).relative,
                   6553.6e-6 + 152 * 0x1p-8);
  EXPECT_NE(replayWarning("bf16", {1, 0.5, 3}).find("change layer 3's output by 50"),
            std::string::npos);
}

} // namespace
