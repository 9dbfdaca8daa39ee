// The paper's plans for its own architectures, and the checker given wrong plans.
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
  Verdict v = planBlock(blocks.block("gemma"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
  ASSERT_EQ(v.plan.outputs.size(), 1u);
  EXPECT_EQ(Sites::name(v.plan.outputs[0].site), "post.norm");
  ASSERT_TRUE(v.plan.outputs[0].normMatrix);
  EXPECT_EQ(Sites::name(v.plan.outputs[0].normMatrix), "down.weight");
  EXPECT_EQ(v.plan.outputs[0].links.size(), 1u);
}

TEST(Planner, NaiveLeavesTheMatrixBeforeTheNorm) {
  Blocks blocks(gemma());
  PlanOptions options;
  options.update = patch::UpdateKind::naive;
  Verdict v = planBlock(blocks.block("gemma"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_FALSE(v.plan.outputs[0].normMatrix);
}

TEST(Planner, LlamaPatchesGateUpAndDown) {
  Blocks blocks(llama());
  Verdict v = planBlock(blocks.block("llama"));
  ASSERT_EQ(v.plan.outputs.size(), 1u);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
  EXPECT_EQ(Sites::name(v.plan.outputs[0].site), "down.weight");
  EXPECT_EQ(v.plan.obligations.size(), 3u);
  EXPECT_EQ(v.plan.obligations[0].lemma, "input controllability of pre-norm MLPs");
  EXPECT_EQ(v.plan.obligations[2].lemma, "output controllability of outer weight matrix");
}

TEST(Planner, AParallelBlockNeedsNoInputPatch) {
  Blocks blocks(parallel());
  Verdict v = planBlock(blocks.block("parallel"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  ASSERT_EQ(v.plan.outputs.size(), 1u);
  EXPECT_TRUE(v.plan.inputSites.empty());
  EXPECT_EQ(Sites::name(v.plan.outputs[0].site), "down.weight");
}

TEST(Planner, AParallelBlockWhoseInputDiffersNeedsOne) {
  Blocks blocks(parallel());
  PlanOptions options;
  options.inputsAreSources = true;
  Verdict v = planBlock(blocks.block("parallel"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"gate.weight", "up.weight"}));
}

TEST(Planner, AnOuterBiasIsNearestToTheOutput) {
  Blocks blocks(biased());
  Verdict v = planBlock(blocks.block("biased"));
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(names(v.plan.inputSites), (Names{"fc1.weight"}));
  EXPECT_EQ(Sites::name(v.plan.outputs[0].site), "fc2.bias");
  EXPECT_EQ(v.plan.outputs[0].links.size(), 2u);
}

static std::vector<std::string> patched(const BlockPlan &plan) { return names(plan.patchedOps()); }

TEST(Planner, EveryPlanThatIsOfferedPassesTheChecker) {
  Blocks blocks(gemma() + llama() + parallel() + biased());
  for (auto block : blocks.module->getOps<xf::BlockOp>())
    for (SiteScope scope : {SiteScope::MLP, SiteScope::All}) {
      PlanOptions options;
      options.scope = scope;
      std::vector<PlanCandidate> plans = enumeratePlans(block, options);
      EXPECT_FALSE(plans.empty());
      for (const PlanCandidate &candidate : plans)
        EXPECT_TRUE(succeeded(checkPlan(block, candidate.plan, options, candidate.outputOnly)));
    }
}

TEST(Planner, LlamaHasAPlanOfOnePatch) {
  Blocks blocks(llama());
  PlanOptions options;
  options.objective = Objective::FewestParameters;
  Verdict v = planBlock(blocks.block("llama"), options);
  EXPECT_EQ(v.kind, VerdictKind::OutputOnly);
  EXPECT_EQ(patched(v.plan), Names{"down.weight"});
}

TEST(Planner, ABiasedBlockNeedsNoDivision) {
  Blocks blocks(biased());
  PlanOptions options;
  options.objective = Objective::NoDivision;
  Verdict v = planBlock(blocks.block("biased"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(patched(v.plan), (Names{"fc1.bias", "fc2.bias"}));
}

TEST(Planner, TheAttentionsOutputMatrixAloneWillDoWhereAllSitesAre) {
  Blocks blocks(llama());
  PlanOptions options;
  options.scope = SiteScope::All;
  options.parameters = {"o.weight"};
  Verdict v = planBlock(blocks.block("llama"), options);
  EXPECT_EQ(v.kind, VerdictKind::Controllable);
  EXPECT_EQ(patched(v.plan), Names{"o.weight"});
  options.scope = SiteScope::MLP;
  EXPECT_EQ(planBlock(blocks.block("llama"), options).kind, VerdictKind::Undecided);
}

TEST(Planner, AScaleAloneIsFragileAndAvoided) {
  Blocks blocks(R"(
  xf.block @scaled(%x: tensor<6xf32>) -> tensor<6xf32> {
    %c = xf.contextual "mix"(%x) : (tensor<6xf32>) -> tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %d = xf.linear %W * %x : tensor<6x6xf32>, tensor<6xf32>
    %m = xf.param "m" : tensor<6xf32>
    %s = xf.scale %d by %m : tensor<6xf32>, tensor<6xf32>
    %y = xf.add %v, %s : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  }
)");
  PlanOptions options;
  EXPECT_EQ(patched(planBlock(blocks.block("scaled"), options).plan), Names{"w"});
  options.objective = Objective::Paper;
  EXPECT_EQ(patched(planBlock(blocks.block("scaled"), options).plan), Names{"m"});
}

TEST(Planner, TwoStreamsWithAMatrixEachAreControlledTogether) {
  Blocks blocks(R"(
  xf.block @streams(%a: tensor<6xf32>, %b: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %c = xf.contextual "mix"(%a) : (tensor<6xf32>) -> tensor<6xf32>
    %p = xf.add %a, %c : tensor<6xf32>
    %q = xf.sub %b, %c : tensor<6xf32>
    %V = xf.param "v" : tensor<6x6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %h = xf.activation silu %p : tensor<6xf32>
    %d = xf.linear %V * %h : tensor<6x6xf32>, tensor<6xf32>
    %e = xf.linear %W * %h : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %p, %d : tensor<6xf32>
    %z = xf.add %q, %e : tensor<6xf32>
    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
  }
)");
  Verdict v = planBlock(blocks.block("streams"));
  EXPECT_EQ(v.kind, VerdictKind::OutputOnly);
  EXPECT_EQ(patched(v.plan), (Names{"v", "w"}));
}
