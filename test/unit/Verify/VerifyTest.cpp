#include "FakeExecutor.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace ctxc::testing;

namespace {

struct VerifyTest : ::testing::Test {
  FakeExecutor executor;
  FakeNorms norms;
  RunRequest request{{3, 1, 4, 1}, {}, 0, false, nullptr, {}};

  VerifyResult run(int64_t count) {
    auto result = verify(executor, request, count, norms, [](const VerifyStep &) {});
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    return std::move(*result);
  }
  std::string failure() {
    auto result = verify(executor, request, 1, norms, [](const VerifyStep &) {});
    return result ? "" : llvm::toString(result.takeError());
  }
};

TEST_F(VerifyTest, patchesFollowTheFullRun) {
  VerifyResult result = run(3);
  ASSERT_EQ(result.steps.size(), 3u);
  // 3 + 1 + 4 + 1 = 9 gives token 2, the sum 11 then gives 4, the sum 15 gives 1.
  EXPECT_EQ(result.steps[0].next, 2);
  EXPECT_EQ(result.steps[1].token, 2);
  EXPECT_EQ(result.steps[1].position, 4);
  EXPECT_EQ(result.steps[2].next, 1);
  for (const VerifyStep &step : result.steps) {
    EXPECT_TRUE(step.patched.match);
    EXPECT_LT(step.patched.linf, 1e-12);
    EXPECT_GT(step.control.linf, 0.1);
    EXPECT_LT(*step.fusedLinf, 1e-12);
  }
  EXPECT_EQ(executor.patchedRuns, 3);
  EXPECT_EQ(executor.controls, 3);
}

TEST_F(VerifyTest, positionsArePatchedInOnePassAndCheckedOneByOne) {
  request.tokens = {2, 1, 4, 3, 5, 2};
  request.kept = {1, 4};
  request.positions = {2, 3, 5};
  std::vector<int64_t> seen;
  auto result = verifyEach(executor, request, norms,
                           [&](const VerifyStep &step) { seen.push_back(step.position); });
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(seen, request.positions);
  EXPECT_EQ(result->steps[1].token, 3);
  for (const VerifyStep &step : result->steps) {
    EXPECT_TRUE(step.patched.match);
    EXPECT_LT(step.patched.linf, 1e-12);
    EXPECT_GT(step.control.linf, 0.1);
    EXPECT_EQ(step.layers[1].obligations.harmless, 2);
  }
  // First the kept tokens of the pass and the tokens between the patched ones; then those of each
  // check, when it is due.
  std::vector<std::vector<int64_t>> expected = {{1, 4}, {0, 1}, {1}, {4}, {4}};
  EXPECT_EQ(executor.prefills, expected);
}

TEST_F(VerifyTest, positionsAreChecked) {
  auto problem = [&](std::vector<int64_t> positions) {
    request.positions = std::move(positions);
    return llvm::toString(checkRequest(request, executor));
  };
  EXPECT_EQ(problem({1, 3}), "");
  EXPECT_NE(problem({0, 1}).find("found 0, whose token has no context"), std::string::npos);
  EXPECT_NE(problem({1, 4}).find("found 4, expected positions from 1 to 3"), std::string::npos);
  EXPECT_NE(problem({2, 2}).find("2 follows 2"), std::string::npos);
  request.materialize = true;
  EXPECT_NE(problem({1}).find("none of them materialized"), std::string::npos);
  request.materialize = false;
  executor.bidirectional = true;
  EXPECT_NE(problem({1}).find("bidirectional"), std::string::npos);
}

TEST_F(VerifyTest, contextIsPrefilledOnceAndKeptTokensToo) {
  request.kept = {0, 2};
  run(3);
  std::vector<std::vector<int64_t>> expected = {{0, 1, 2}, {0, 2}};
  EXPECT_EQ(executor.prefills, expected);
}

TEST_F(VerifyTest, disagreementIsRecordedAndTheFullRunsTokenTaken) {
  executor.error = 1; // the patched run's sum is one too large
  VerifyResult result = run(2);
  EXPECT_FALSE(result.steps[0].patched.match);
  EXPECT_EQ(result.steps[0].patched.token, 3);
  EXPECT_EQ(result.steps[1].token, 2);
  VerifySummary summary = summarize(result.steps);
  EXPECT_EQ(summary.matches, 0);
  EXPECT_FALSE(summary.verified());
}

TEST_F(VerifyTest, logitsThatAreNotFiniteAreNoMatch) {
  executor.broken = true;
  VerifySummary summary = summarize(run(1).steps);
  EXPECT_FALSE(summary.finite);
  EXPECT_FALSE(summary.verified());
}

TEST_F(VerifyTest, layersCarryNormsObligationsAndReplayError) {
  VerifyResult result = run(2);
  const VerifyStep &step = result.steps[0];
  ASSERT_EQ(step.layers.size(), 2u);
  EXPECT_DOUBLE_EQ(step.layers[0].norm.vector, 0);
  EXPECT_DOUBLE_EQ(step.layers[1].norm.vector, 8); // 3 + 1 + 4
  EXPECT_DOUBLE_EQ(step.layers[1].norm.vectorRelative, 4);
  EXPECT_DOUBLE_EQ(step.layers[1].norm.matrix, 0);
  EXPECT_EQ(step.layers[1].obligations.harmless, 2);
  EXPECT_DOUBLE_EQ(step.layers[1].replayError, 1e-6);
  EXPECT_EQ(norms.reads, 1) << "the parameter's own norm is read once";
  VerifySummary summary = summarize(result.steps);
  EXPECT_EQ(summary.harmless, 4);
  EXPECT_EQ(summary.harmful, 2);
}

TEST_F(VerifyTest, storedPatchIsCheckedAgainstTheFullRun) {
  RunTimes times;
  auto made = makePatch(executor, request, times);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  auto good = verifyPatch(executor, request, made->patch, norms);
  ASSERT_TRUE(bool(good)) << llvm::toString(good.takeError());
  EXPECT_TRUE(summarize(good->steps).verified());
  EXPECT_FALSE(good->steps[0].fusedLinf.has_value());

  made->patch.parameters[0].delta[0] += 2;
  auto bad = verifyPatch(executor, request, made->patch, norms);
  ASSERT_TRUE(bool(bad)) << llvm::toString(bad.takeError());
  EXPECT_FALSE(summarize(bad->steps).verified());
}

TEST_F(VerifyTest, logitsAreHandedOut) {
  std::vector<int64_t> largest;
  request.logits = [&](auto full, auto patched, auto control) {
    for (llvm::ArrayRef<double> logits : {full, patched, control})
      largest.push_back(argmax(logits));
  };
  run(1);
  EXPECT_EQ(largest, (std::vector<int64_t>{2, 2, 1})); // sums 9, 9 and 1, modulo 7
}

TEST_F(VerifyTest, badRequestsAreNamedTogether) {
  request.tokens = {3, 9, -1};
  request.kept = {1, 0, 2};
  request.startLayer = 2;
  EXPECT_EQ(failure(), "tokens: tokens 1, 2 are 9, -1, expected ids from 0 to 6\n"
                       "kept positions: found 2, expected positions of the context, from 0 to 1\n"
                       "kept positions: 0 follows 1, expected ascending positions\n"
                       "start layer: found 2, expected a layer from 0 to 1");
}

TEST_F(VerifyTest, oneTokenIsNoContext) {
  request.tokens = {3};
  EXPECT_EQ(failure(), "tokens: found 1, expected at least two: a context, and the last token "
                       "that is run after it");
}

TEST_F(VerifyTest, aBidirectionalContextHasSeenTheToken) {
  executor.bidirectional = true;
  run(1);
  // All tokens at once, the last of which is then removed: the patch appends it again.
  EXPECT_EQ(executor.prefills, (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}}));
  RunTimes times;
  auto made = makePatch(executor, request, times);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  auto checked = verifyPatch(executor, request, made->patch, norms);
  ASSERT_TRUE(bool(checked)) << llvm::toString(checked.takeError());
  EXPECT_TRUE(summarize(checked->steps).verified());
}

TEST_F(VerifyTest, aBidirectionalModelKeepsAndGeneratesNothing) {
  executor.bidirectional = true;
  request.kept = {1};
  auto result = verify(executor, request, 2, norms, [](const VerifyStep &) {});
  EXPECT_EQ(
      llvm::toString(result.takeError()),
      "kept positions: found some, and the model is bidirectional: kept tokens would see the "
      "patched one, and change with it; expected none\n"
      "tokens to generate: found 2, and the model is bidirectional: a token more would change "
      "the runs of those before it; expected 1");
}

TEST(PatchNorms, rank1IsTheProductOfTheFactorsNorms) {
  ParameterPatch patch{"w", ParameterPatch::Kind::Rank1, {2, 3}, {3, 4}, {0, 0, 2}, {}};
  EXPECT_DOUBLE_EQ(squaredNorm(patch), 25 * 4);
}

} // namespace
