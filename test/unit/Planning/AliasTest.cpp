// A parameter is identified by its stored tensor, whatever a block or a layer calls it. A tensor
// that is stored once is not patched where another use of it needs another value.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/ModelCheck.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

/// llama() in a model of three layers; the second has `second` after its prefix.
std::string bound(const std::string &second) {
  std::string text = llama() + model("llama");
  std::string at = "at \"layers.1.\"";
  text.replace(text.find(at), at.size(), at + " " + second);
  return text;
}

/// The parameters that the plan of layer `layer` patches; "none" where it has no plan.
std::string patched(Blocks &blocks, unsigned layer, ModelOptions options = {}) {
  EXPECT_TRUE(bool(blocks.module));
  std::string names;
  for (const LayerVerdict &each : checkModel(*blocks.module, options))
    if (each.layer == layer)
      for (Operation *op : each.verdict->plan.patchedOps())
        names += (names.empty() ? "" : " ") + Sites::name(op);
  return names.empty() ? "none" : names;
}

TEST(Alias, TwoNamesOfABlockAreOneParameter) {
  Blocks plain(bound(""));
  EXPECT_EQ(patched(plain, 1), "gate.weight up.weight down.weight");
  // Gate and up cannot both be patched; down can be patched alone.
  Blocks tied(bound("bind {gate.weight = \"t\", up.weight = \"t\"}"));
  EXPECT_EQ(patched(tied, 0), "gate.weight up.weight down.weight");
  for (const LayerVerdict &each : checkModel(*tied.module))
    if (each.layer == 1)
      for (Operation *op : each.verdict->plan.patchedOps()) {
        EXPECT_NE(Sites::name(op), "gate.weight");
        EXPECT_NE(Sites::name(op), "up.weight");
      }
}

void expectUntouched(const std::string &text, unsigned layer, StringRef name) {
  Blocks blocks(text);
  ASSERT_TRUE(bool(blocks.module));
  for (SiteScope scope : {SiteScope::MLP, SiteScope::All}) {
    ModelOptions options;
    options.scope = scope;
    for (const LayerVerdict &each : checkModel(*blocks.module, options))
      if (each.layer == layer)
        for (const PlanCandidate &candidate : enumeratePlans(each.block, *each.options))
          for (Operation *op : candidate.plan.patchedOps())
            EXPECT_NE(Sites::name(op), name);
  }
}

TEST(Alias, WhatAnotherUseNeedsIsNotPatched) {
  // A matrix of attention with the same shape.
  expectUntouched(bound("bind {gate.weight = \"layers.1.up.weight\"}"), 1, "up.weight");
  // A matrix of the embedding.
  expectUntouched(bound("bind {down.weight = \"embed.weight\"}"), 1, "down.weight");
}

TEST(Alias, AMatrixOfTwoLayersHasOneChangeForBoth) {
  Blocks blocks(bound("bind {down.weight = \"layers.0.down.weight\"}"));
  for (const LayerVerdict &layer : checkModel(*blocks.module)) {
    const BlockPlan &plan = layer.verdict->plan;
    if (layer.layer == 2) // which has its own
      continue;
    ASSERT_EQ(plan.patchedOps().size(), 1u);
    EXPECT_EQ(Sites::name(plan.patchedOps().front()), "down.weight");
    EXPECT_EQ(plan.runs, 2u);
  }
}

TEST(Alias, OfAFrozenParameterIsFrozen) {
  expectUntouched(bound("bind {gate.weight = \"layers.1.up.weight\"} frozen [\"gate.weight\"]"), 1,
                  "up.weight");
}

/// A mixture, and one of its experts used on its own beside it.
std::string bank(const std::string &alone) {
  return R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %W = xf.param ")" +
         alone + R"(" : tensor<6x6xf32>
    %e = xf.linear %W * %v : tensor<6x6xf32>, tensor<6xf32>
    %R = xf.param "router" : tensor<4x6xf32>
    %l = xf.linear %R * %v : tensor<4x6xf32>, tensor<6xf32>
    %p = xf.softmax %l : tensor<4xf32>
    %s = xf.top_k %p k 2 : tensor<4xf32>
    %w = xf.gather %p[%s] : tensor<4xf32>, tensor<2xi32>
    %D = xf.param "experts.*.down" : tensor<4x6x6xf32>
    %d = xf.expert_linear %D[%s] * %e : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
    %m = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
    %y = xf.add %v, %m : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
}

TEST(Alias, AMemberOfABankIsTheBanks) {
  Blocks apart(bank("shared.down")), member(bank("experts.3.down")), beyond(bank("experts.4.down"));
  auto kinds = [](Blocks &blocks) {
    SmallVector<std::string> names;
    for (const PlanCandidate &candidate : enumeratePlans(blocks.block("b"), {}))
      for (Operation *op : candidate.plan.patchedOps())
        names.push_back(Sites::name(op));
    return names;
  };
  EXPECT_TRUE(llvm::is_contained(kinds(apart), "experts.*.down"));
  EXPECT_TRUE(llvm::is_contained(kinds(beyond), "experts.*.down"));
  EXPECT_FALSE(llvm::is_contained(kinds(member), "experts.*.down"));
  EXPECT_FALSE(llvm::is_contained(kinds(member), "experts.3.down"));
}

TEST(Alias, WhatIsSharedByOneNameIsSharedByTheOther) {
  std::string text = bank("experts.3.down");
  text.replace(text.find("* %e :"), 6, "* %v :"); // what reads the member alone reaches no output
  Blocks blocks(text);
  xf::BlockOp block = blocks.block("b");
  BlockGraph graph(block);
  ZeroRange zeros(block);
  xf::ExpertLinearOp experts = *block.getBody().getOps<xf::ExpertLinearOp>().begin();
  Bindings own, shared;
  shared.shared.insert("experts.3.down");
  EXPECT_TRUE(Sites(graph, zeros, own).isAssignable(experts));
  EXPECT_FALSE(Sites(graph, zeros, shared).isAssignable(experts));
}

TEST(Alias, AMemberOfAnotherLayersBankIsShared) {
  std::string text = bank("shared.down") + R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed" : tensor<11x6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %x1 = xf.layer @b(%e) at "l.0." : (tensor<6xf32>) -> tensor<6xf32>
    %x2 = xf.layer @b(%x1) at "l.1." bind {shared.down = "l.0.experts.2.down"} : (tensor<6xf32>) -> tensor<6xf32>
    %y = xf.linear %E * %x2 : tensor<11x6xf32>, tensor<6xf32>
    xf.yield %y : tensor<11xf32>
  })";
  expectUntouched(text, 0, "experts.*.down");
  expectUntouched(text, 1, "shared.down");
}

} // namespace
