// The checker of plans, given wrong ones.
#include "../Transforms/Blocks.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {
class CheckPlan : public ::testing::Test {
protected:
  /// The checker's message about `plan` for `block`; empty where it accepts the plan.
  std::string check(xf::BlockOp block, const BlockPlan &plan, bool outputOnly = false,
                    const PlanOptions &options = {}) {
    std::string message;
    ScopedDiagnosticHandler handler(block.getContext(), [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    LogicalResult result = checkPlan(block, plan, options, outputOnly);
    EXPECT_EQ(succeeded(result), message.empty());
    return message;
  }

  void expectRefused(const std::string &message, const char *part) {
    EXPECT_NE(message.find(part), std::string::npos) << "found: " << message;
  }

  Blocks blocks{gemma() + llama() + parallel() + biased()};
  xf::BlockOp gemmaBlock = blocks.block("gemma"), llamaBlock = blocks.block("llama"),
              parallelBlock = blocks.block("parallel"), biasedBlock = blocks.block("biased");
};
} // namespace

TEST_F(CheckPlan, AcceptsThePlannersPlans) {
  for (xf::BlockOp block : {gemmaBlock, llamaBlock, parallelBlock, biasedBlock})
    EXPECT_EQ(check(block, planBlock(block).plan), "");
}

TEST_F(CheckPlan, P1RefusesWhatIsNoSite) {
  BlockPlan plan = planBlock(gemmaBlock).plan;
  plan.inputSites.push_back(blocks.site(gemmaBlock, "o.weight"));
  expectRefused(check(gemmaBlock, plan), "belongs to the contextual part");

  plan = planBlock(gemmaBlock).plan;
  plan.inputSites.push_back(plan.inputSites.front());
  expectRefused(check(gemmaBlock, plan), "patches 'gate.weight' twice");

  plan = planBlock(gemmaBlock).plan;
  PlanOptions options;
  options.bindings.frozen.insert("up.weight");
  expectRefused(check(gemmaBlock, plan, false, options), "'up.weight' is frozen");
  options.bindings.frozen.clear();
  options.bindings.shared.insert("post.norm");
  expectRefused(check(gemmaBlock, plan, false, options), "shared with another layer");

  plan.inputSites[0] =
      plan.inputSites[0]->getOperand(1).getDefiningOp()->getOperand(0).getDefiningOp();
  expectRefused(check(gemmaBlock, plan), "which has no parameter");
  expectRefused(check(llamaBlock, planBlock(gemmaBlock).plan), "another block");
}

TEST_F(CheckPlan, P2RefusesABrokenChain) {
  BlockPlan plan = planBlock(biasedBlock).plan;
  plan.outputs[0].links.erase(plan.outputs[0].links.begin());
  expectRefused(check(biasedBlock, plan), "not connected");

  plan = planBlock(llamaBlock).plan;
  plan.outputs[0].links[0].operand = 0;
  expectRefused(check(llamaBlock, plan), "not connected");

  // A chain that starts at gate.weight would have to solve the activation.
  plan = planBlock(llamaBlock).plan;
  plan.outputs[0].site = blocks.site(llamaBlock, "gate.weight");
  plan.inputSites.clear();
  expectRefused(check(llamaBlock, plan), "not connected");
  Operation *activation = *plan.outputs[0].site->user_begin();
  plan.outputs[0].links = {{activation, 0}};
  expectRefused(check(llamaBlock, plan), "does not reach every value");
}

/// y = v + [d1 v; d2 v]: the halves have a matrix each.
static const char *halves = R"(
  xf.block @halves(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %v = xf.add %x, %c : tensor<4xf32>
    %D1 = xf.param "d1" : tensor<2x4xf32>
    %p = xf.linear %D1 * %v : tensor<2x4xf32>, tensor<4xf32>
    %D2 = xf.param "d2" : tensor<2x4xf32>
    %q = xf.linear %D2 * %v : tensor<2x4xf32>, tensor<4xf32>
    %pq = xf.concat %p, %q : tensor<2xf32>, tensor<2xf32>
    %y = xf.add %v, %pq : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  })";

TEST_F(CheckPlan, P2RefusesAPartAlone) {
  Blocks apart(halves);
  xf::BlockOp block = apart.block("halves");
  BlockPlan plan = planBlock(block).plan;
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(check(block, plan, /*outputOnly=*/true), "");
  BlockPlan swapped = plan;
  swapped.outputs[0].links[0].operand = 1;
  expectRefused(check(block, swapped, /*outputOnly=*/true), "not connected");
  plan.outputs.pop_back();
  expectRefused(check(block, plan, /*outputOnly=*/true), "brings one part of xf.concat");
}

TEST_F(CheckPlan, P3RefusesAnEndThatIsNoGoal) {
  BlockPlan plan = planBlock(llamaBlock).plan;
  plan.outputs[0].links.clear();
  expectRefused(check(llamaBlock, plan), "does not end where the plan says");

  // The residual stream bypasses the result of W_down.
  plan.outputs[0].goal = plan.outputs[0].site->getResult(0);
  expectRefused(check(llamaBlock, plan), "to an output of the block past its goals");
}

TEST_F(CheckPlan, P5RefusesAnOpenPath) {
  BlockPlan plan = planBlock(llamaBlock).plan;
  plan.inputSites.pop_back();
  expectRefused(check(llamaBlock, plan), "leave a path from the context");
  EXPECT_EQ(check(llamaBlock, plan, /*outputOnly=*/true), "");

  // Where the block's input differs, a parallel block also has paths that must be cut.
  plan = planBlock(parallelBlock).plan;
  PlanOptions options;
  options.inputsAreSources = true;
  expectRefused(check(parallelBlock, plan, false, options), "leave a path from the context");

  plan = blocks.plan(biasedBlock, {"fc1.weight", "fc2.bias"}, "fc2.weight");
  expectRefused(check(biasedBlock, plan), "reads what is patched for the output");
}

TEST_F(CheckPlan, P6RefusesAMatrixThatIsNotBeforeTheNorm) {
  BlockPlan plan = planBlock(gemmaBlock).plan;
  plan.outputs[0].normMatrix = plan.inputSites.pop_back_val();
  expectRefused(check(gemmaBlock, plan), "not the matrix before its norm alone");
}

TEST_F(CheckPlan, RefusesNoPlanWhereTheContextIsRead) {
  expectRefused(check(llamaBlock, BlockPlan()), "no output site");
}
