// Both runs read a weight in a single sweep.
#include "Blocks.h"
#include "ctxc/Transforms/BuildPatch.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

TEST(PackLinears, EveryWeightOfADualBlockIsReadOnce) {
  Blocks blocks(gemma());
  xf::BlockOp block = blocks.block("gemma");
  BlockPlan plan = blocks.plan(block, {"gate.weight", "up.weight"}, "post.norm", "down.weight");
  xf::BlockOp dual = buildDualBlock(block, plan, patch::UpdateKind::least, "dual");
  ASSERT_TRUE(dual);
  packLinears(dual);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  EXPECT_EQ(countOps<xf::LinearOp>(dual), 0);
  EXPECT_EQ(countOps<patch::LinearsOp>(dual), countOps<xf::LinearOp>(block));
}

xf::BlockOp packed(Blocks &blocks) {
  xf::BlockOp block = blocks.block("b");
  packLinears(block);
  EXPECT_TRUE(succeeded(verify(*blocks.module)));
  return block;
}

TEST(PackLinears, MovesUsersThatStandBetween) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
    %W = xf.param "w" : tensor<4x4xf32>
    %p = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %s = xf.activation silu %p : tensor<4xf32>
    %t = xf.add %s, %z : tensor<4xf32>
    %W2 = xf.param "w" : tensor<4x4xf32>
    %q = xf.linear %W2 * %z : tensor<4x4xf32>, tensor<4xf32>
    %y = xf.add %t, %q : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
)");
  xf::BlockOp block = packed(blocks);
  EXPECT_EQ(countOps<xf::LinearOp>(block), 0);
  EXPECT_EQ(countOps<patch::LinearsOp>(block), 1);
}

TEST(PackLinears, LeavesALinearThatNeedsTheOther) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %W = xf.param "w" : tensor<4x4xf32>
    %p = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %s = xf.activation silu %p : tensor<4xf32>
    %y = xf.linear %W * %s : tensor<4x4xf32>, tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
)");
  EXPECT_EQ(countOps<xf::LinearOp>(packed(blocks)), 2);
}

TEST(PackLinears, PacksMoreThanTwoAndOnlyOfOneKind) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>, %h: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) {
    %W = xf.param "w" : tensor<4x4xf32>
    %n = xf.times %x by -1.000000e+00 : tensor<4xf32>
    %p = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %q = xf.linear %W * %n : tensor<4x4xf32>, tensor<4xf32>
    %r = xf.linear %W * %n : tensor<4x4xf32>, tensor<4xf32>
    %t = xf.linear %W * %x transposed : tensor<4x4xf32>, tensor<4xf32>
    %k = xf.linear %W * %h : tensor<4x4xf32>, tensor<2x4xf32>
    xf.yield %p, %q, %r, %t, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>
  }
)");
  xf::BlockOp block = packed(blocks);
  EXPECT_EQ(countOps<xf::LinearOp>(block), 2);
  auto linears = *block.getBody().front().getOps<patch::LinearsOp>().begin();
  ASSERT_EQ(linears.getResults().size(), 3u);
  Operation *yield = block.getBody().front().getTerminator();
  for (unsigned i : {0, 1, 2})
    EXPECT_EQ(yield->getOperand(i), linears.getResults()[i]);
}

TEST(PackLinears, ContextualOpsKeepTheirOrder) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %W = xf.param "w" : tensor<4x4xf32>
    %p = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %c = xf.contextual "first"(%p) : (tensor<4xf32>) -> tensor<4xf32>
    %d = xf.contextual "second"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %e = xf.contextual "of another run"(%x) run reduced : (tensor<4xf32>) -> tensor<4xf32>
    %q = xf.linear %W * %e : tensor<4x4xf32>, tensor<4xf32>
    xf.yield %c, %d, %q : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
)");
  xf::BlockOp block = packed(blocks);
  EXPECT_EQ(countOps<patch::LinearsOp>(block), 1);
  std::vector<std::string> order;
  block.walk([&](xf::OpaqueContextualOp op) { order.push_back(op.getNameAttr().str()); });
  EXPECT_EQ(order, (std::vector<std::string>{"of another run", "first", "second"}));
}

} // namespace
