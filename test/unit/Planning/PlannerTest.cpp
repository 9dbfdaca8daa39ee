// The paper's plans for its own architectures, and the checker on wrong plans.
#include "ctxc/Planning/Planner.h"
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/Sites.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

static std::vector<std::string> names(llvm::ArrayRef<Operation *> ops) {
  std::vector<std::string> result;
  for (Operation *op : ops)
    result.push_back(Sites::name(op));
  return result;
}

using Names = std::vector<std::string>;

TEST(Planner, GemmaPatchesGateUpDownAndTheScale) {
  Blocks blocks(gemma());
  Verdict v = planPaper(blocks.block("gemma"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
  ASSERT_TRUE(v.plan.outputSite);
  EXPECT_EQ(Sites::name(v.plan.outputSite), "post.norm");
  ASSERT_TRUE(v.plan.normMatrix);
  EXPECT_EQ(Sites::name(v.plan.normMatrix), "down.weight");
  EXPECT_EQ(v.plan.chain.size(), 1u);
  EXPECT_FALSE(v.plan.waist);
}

TEST(Planner, NaiveLeavesTheMatrixBeforeTheNorm) {
  Blocks blocks(gemma());
  PlanOptions options;
  options.update = patch::UpdateKind::naive;
  Verdict v = planPaper(blocks.block("gemma"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_FALSE(v.plan.normMatrix);
}

TEST(Planner, LlamaPatchesGateUpAndDown) {
  Blocks blocks(llama());
  Verdict v = planPaper(blocks.block("llama"));
  ASSERT_TRUE(v.plan.outputSite);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
  EXPECT_EQ(Sites::name(v.plan.outputSite), "down.weight");
  EXPECT_EQ(v.plan.obligations.size(), 3u);
  EXPECT_EQ(v.plan.obligations[0].lemma, "input controllability of pre-norm MLPs");
  EXPECT_EQ(v.plan.obligations[2].lemma, "output controllability of outer weight matrix");
}

TEST(Planner, AParallelBlockNeedsNoInputPatch) {
  Blocks blocks(parallel());
  Verdict v = planPaper(blocks.block("parallel"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_TRUE(v.plan.inputSites.empty());
  EXPECT_EQ(Sites::name(v.plan.outputSite), "down.weight");
}

TEST(Planner, AParallelBlockWhoseInputDiffersNeedsOne) {
  Blocks blocks(parallel());
  PlanOptions options;
  options.inputsAreSources = true;
  Verdict v = planPaper(blocks.block("parallel"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
}

TEST(Planner, AnOuterBiasIsNearestToTheOutput) {
  Blocks blocks(biased());
  Verdict v = planPaper(blocks.block("biased"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"fc1.weight"}));
  EXPECT_EQ(Sites::name(v.plan.outputSite), "fc2.bias");
  EXPECT_EQ(v.plan.chain.size(), 2u);
}
