// A plan of one block, tried: the families' are exact, and one whose obligation fails is not.
#include "ctxc/Evidence/Trial.h"
#include "../Transforms/Blocks.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;
using patch::UpdateKind;

namespace {

/// Random weights, but for one parameter whose entries are all equal.
class WithConstant : public Weights {
public:
  WithConstant(StringRef name, float value) : name(name), value(value) {}
  llvm::Expected<const void *> get(StringRef asked, RankedTensorType type) override {
    if (asked != name)
      return others->get(asked, type);
    numbers.assign(type.getNumElements(), value);
    return static_cast<const void *>(numbers.data());
  }
  llvm::Expected<std::string> hash() override { return "test"; }

private:
  std::string name;
  float value;
  std::vector<float> numbers;
  std::unique_ptr<Weights> others = randomWeights(1);
};

Trial attempt(Blocks &blocks, StringRef name, TrialOptions options = {}) {
  xf::BlockOp block = blocks.block(name);
  PlanOptions planOptions;
  planOptions.update = options.update;
  planOptions.inputsAreSources = options.inputsAreSources;
  Verdict verdict = planBlock(block, planOptions);
  EXPECT_TRUE(verdict.isSuccess());
  llvm::Expected<Trial> trial = tryPlan(block, verdict.plan, options);
  if (trial)
    return *trial;
  ADD_FAILURE() << llvm::toString(trial.takeError());
  return {};
}

TEST(Trial, PlansOfTheFamiliesAreExact) {
  Blocks blocks(gemma() + llama() + parallel() + biased());
  for (StringRef name : {"gemma", "llama", "parallel", "biased"})
    for (UpdateKind update : {UpdateKind::least, UpdateKind::naive, UpdateKind::balanced})
      for (bool inputsAreSources : {false, true}) {
        SCOPED_TRACE(name.str());
        TrialOptions options;
        options.update = update;
        options.inputsAreSources = inputsAreSources;
        Trial trial = attempt(blocks, name, options);
        EXPECT_LT(trial.error, 1e-9);
        EXPECT_TRUE(trial.isExact());
        EXPECT_GT(trial.control, 1e-2);
        EXPECT_EQ(trial.harmful, 0);
        EXPECT_GT(trial.patchNorm, 0);
        EXPECT_GT(trial.drift, 0);
        EXPECT_GE(trial.conditioning(), 1);
      }
  // Nothing that was built for the trials stays behind.
  EXPECT_EQ(countOps<xf::BlockOp>(*blocks.module), 4);
}

TEST(Trial, IsTheSameForTheSameSeedAndAnotherForAnother) {
  Blocks blocks(llama());
  Trial first = attempt(blocks, "llama"), again = attempt(blocks, "llama");
  EXPECT_EQ(first.control, again.control);
  EXPECT_EQ(first.patchNorm, again.patchNorm);
  TrialOptions options;
  options.seed = 2;
  EXPECT_NE(attempt(blocks, "llama", options).control, first.control);
}

TEST(Trial, AnOutputBiasMovesEveryTokenAndAMatrixFewer) {
  // On a token that is orthogonal to z a rank-1 patch does nothing; a bias does the same
  // to all of them.
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  auto driftOf = [&](StringRef output) {
    llvm::Expected<Trial> trial =
        tryPlan(block, blocks.plan(block, {"fc1.weight"}, output), TrialOptions());
    EXPECT_TRUE(bool(trial));
    EXPECT_TRUE(trial->isExact());
    return trial->drift;
  };
  EXPECT_GT(driftOf("fc2.bias"), 1.2 * driftOf("fc2.weight"));
}

TEST(Trial, AFailedObligationIsCountedAndInexact) {
  // All of the relu's inputs are negative in both runs, so that the outer matrix reads zero.
  Blocks blocks(biased());
  xf::BlockOp block = blocks.block("biased");
  WithConstant weights("fc1.bias", -1000);
  TrialOptions options;
  options.weights = &weights;
  BlockPlan plan = blocks.plan(block, {"fc1.weight"}, "fc2.weight");
  llvm::Expected<Trial> trial = tryPlan(block, plan, options);
  ASSERT_TRUE(bool(trial)) << llvm::toString(trial.takeError());
  EXPECT_EQ(trial->harmful, 1);
  EXPECT_FALSE(trial->isExact());
  EXPECT_NEAR(trial->error, trial->control, 1e-12);
  // The bias asks for nothing.
  trial = tryPlan(block, blocks.plan(block, {"fc1.weight"}, "fc2.bias"), options);
  ASSERT_TRUE(bool(trial));
  EXPECT_TRUE(trial->isExact());
}

TEST(Trial, AnOpWithoutAMeaningIsAnError) {
  Blocks blocks(
      block("opaque", "    %W = xf.param \"w\" : tensor<6x6xf32>\n"
                      "    %a = xf.contextual \"mixer\"(%x) : (tensor<6xf32>) -> "
                      "tensor<6xf32>\n" +
                          add("v", "x", "a") +
                          "    %d = xf.linear %W * %v : tensor<6x6xf32>, tensor<6xf32>\n" +
                          add("y", "v", "d")));
  xf::BlockOp block = blocks.block("opaque");
  llvm::Expected<Trial> trial = tryPlan(block, planBlock(block).plan, {});
  ASSERT_FALSE(bool(trial));
  EXPECT_NE(llvm::toString(trial.takeError()).find("no meaning"), std::string::npos);
}

} // namespace
