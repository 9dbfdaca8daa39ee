// How far patches move values. A reach that is too small would make a false rejection.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/PatchReach.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

/// The reach of %y, which `body` computes from W x and V x, %a and %b.
Reach reachOf(const std::string &body, const std::string &type = "tensor<4xf32>") {
  Blocks blocks("  xf.block @b(%x: tensor<4xf32>) -> " + type + R"( {
    %W = xf.param "w" : tensor<4x4xf32>
    %a = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %V = xf.param "v" : tensor<4x4xf32>
    %b = xf.linear %V * %x : tensor<4x4xf32>, tensor<4xf32>
)" + body +
                "    xf.yield %y : " + type + "\n  }\n");
  xf::BlockOp block = blocks.block("b");
  BlockGraph graph(block);
  ZeroRange zeros(block);
  Bindings bindings;
  Sites sites(graph, zeros, bindings);
  return PatchReach(graph, sites, zeros).reach(graph.yield()->getOperand(0));
}

std::string activation(const std::string &to, const std::string &kind, const std::string &x) {
  return "    %" + to + " = xf.activation " + kind + " %" + x + " : tensor<4xf32>\n";
}

} // namespace

TEST(PatchReach, OfABoundedPartBesideAFreeOne) {
  std::string whole = "    %y = xf.concat %p, %q : tensor<4xf32>, tensor<4xf32>\n";
  std::string free = "    %q = xf.times %b by 2.0 : tensor<4xf32>\n";
  EXPECT_EQ(
      reachOf(activation("p", "tanh", "a") + activation("q", "tanh", "b") + whole, "tensor<8xf32>")
          .kind,
      Reach::Bounded);
  EXPECT_EQ(reachOf(activation("p", "tanh", "a") + free + whole, "tensor<8xf32>").kind,
            Reach::Free);
  Reach still =
      reachOf("    %p = xf.activation gelu %x : tensor<4xf32>\n" + free + whole, "tensor<8xf32>");
  EXPECT_EQ(still.kind, Reach::Thin); // x does not move
  EXPECT_EQ(still.dimensions, 4);
}

TEST(PatchReach, OfSumsOfOneSidedValues) {
  std::string both = activation("p", "relu", "a") + activation("q", "relu", "b");
  Reach sum = reachOf(both + "    %y = xf.add %p, %q : tensor<4xf32>\n");
  EXPECT_EQ(sum.kind, Reach::OneSided);
  EXPECT_EQ(sum.sign, 1);
  EXPECT_EQ(reachOf(both + "    %y = xf.sub %p, %q : tensor<4xf32>\n").kind, Reach::Free);
  std::string times = activation("p", "relu", "a") + "    %y = xf.times %p by ";
  EXPECT_EQ(reachOf(times + "2.0 : tensor<4xf32>\n").sign, 1);
  EXPECT_EQ(reachOf(times + "-2.0 : tensor<4xf32>\n").sign, -1);
}

/// The verdict, by rules alone, where frozen narrow matrices end both branches.
static VerdictKind verdictOfNarrow(const std::string &ofContext, const std::string &ofMlp) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %A = xf.param "a" : tensor<2x4xf32>
    %a = xf.linear %A * %c : tensor<2x4xf32>, tensor<4xf32>
    %F = xf.param ")" +
                ofContext + R"(" frozen : tensor<4x2xf32>
    %s = xf.linear %F * %a : tensor<4x2xf32>, tensor<2xf32>
    %v = xf.add %x, %s : tensor<4xf32>
    %W = xf.param "w" : tensor<2x4xf32>
    %d = xf.linear %W * %x : tensor<2x4xf32>, tensor<4xf32>
    %G = xf.param ")" +
                ofMlp +
                R"(" frozen : tensor<4x2xf32>
    %t = xf.linear %G * %d : tensor<4x2xf32>, tensor<2xf32>
    %y = xf.add %v, %t : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
)");
  return planBlock(blocks.block("b")).kind;
}

TEST(PatchReach, OfTheSubspaceInWhichTheContextActs) {
  EXPECT_EQ(verdictOfNarrow("f", "g"), VerdictKind::Rejected);
  EXPECT_EQ(verdictOfNarrow("f", "f"), VerdictKind::Undecided); // both stay in it
}
