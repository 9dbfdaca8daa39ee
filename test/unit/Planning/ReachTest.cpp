// How far patches move values. A reach that is too small would make a false rejection.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/PatchReach.h"

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
}
