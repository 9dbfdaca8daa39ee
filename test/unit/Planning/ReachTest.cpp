// How far patches move values. A reach that is too small would make a false rejection.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/ContextChange.h"
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

TEST(PatchReach, OfABiasIsThatOfItsNumbers) {
  std::string bounded =
      activation("p", "tanh", "a") + "    %r = xf.reshape %p : tensor<4xf32> to tensor<2x2xf32>\n";
  Reach shared = reachOf(bounded + "    %B = xf.param \"bias\" : tensor<2xf32>\n"
                                   "    %y = xf.bias %r + %B : tensor<2x2xf32>, tensor<2xf32>\n",
                         "tensor<2x2xf32>");
  EXPECT_EQ(shared.kind, Reach::Thin);
  EXPECT_EQ(shared.dimensions, 2);
  EXPECT_TRUE(shared.near);
  Reach own = reachOf(bounded + "    %B = xf.param \"bias\" : tensor<2x2xf32>\n"
                                "    %y = xf.bias %r + %B : tensor<2x2xf32>, tensor<2x2xf32>\n",
                      "tensor<2x2xf32>");
  EXPECT_EQ(own.kind, Reach::Free);
}

TEST(PatchReach, OfTwoSubspacesHasTheDimensionsOfBoth) {
  auto narrow = [](const std::string &to, const std::string &from, int size) {
    std::string in = std::to_string(size), part = "tensor<" + in + "xf32>";
    return "    %" + to + "s = xf.slice %" + from + " from 0 : tensor<4xf32> to " + part +
           "\n    %" + to + "F = xf.param \"" + to + "\" frozen : tensor<4x" + in + "xf32>\n    %" +
           to + " = xf.linear %" + to + "F * %" + to + "s : tensor<4x" + in + "xf32>, " + part +
           "\n";
  };
  Reach sum = reachOf(narrow("p", "a", 1) + narrow("q", "b", 2) +
                      "    %y = xf.add %p, %q : tensor<4xf32>\n");
  EXPECT_EQ(sum.kind, Reach::Thin);
  EXPECT_EQ(sum.dimensions, 3);
}

/// What multiplies a value that has one side leaves the side where it has one itself.
TEST(PatchReach, OfAMultipleHasTheFactorsSign) {
  std::string side = activation("p", "relu", "a");
  auto times = [&](const std::string &factor) {
    return reachOf(side + factor + "    %y = xf.mul %p, %f : tensor<4xf32>, tensor<4xf32>\n");
  };
  EXPECT_EQ(times(activation("f", "exp", "x")).sign, 1);
  Reach either = times(activation("f", "tanh", "x"));
  EXPECT_EQ(either.kind, Reach::OneSided);
  EXPECT_EQ(either.sign, 0);
}

/// Which entries of %y, computed from what a convolution reads of the context, surely change.
static Extent changeOf(const std::string &body) {
  Blocks blocks("  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                "    %K = xf.param \"conv\" : tensor<4x3xf32>\n"
                "    %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>\n" +
                body + "    xf.yield %y : tensor<4xf32>\n  }\n");
  BlockGraph graph(blocks.block("b"));
  ZeroRange zeros(blocks.block("b"));
  return ContextChange(graph, zeros, {}).extent(graph.yield()->getOperand(0));
}

TEST(ContextChange, IsShownOnlyWhereNothingLosesIt) {
  EXPECT_EQ(changeOf("    %y = xf.times %c by 2.0 : tensor<4xf32>\n"), Extent::Every);
  EXPECT_EQ(changeOf(activation("y", "relu", "c")), Extent::Unknown);
  // A square is the same for the opposite.
  EXPECT_EQ(changeOf("    %y = xf.mul %c, %c : tensor<4xf32>, tensor<4xf32>\n"), Extent::Unknown);
  // The half of the concatenation that the context does not reach.
  EXPECT_EQ(changeOf("    %w = xf.concat %c, %x : tensor<4xf32>, tensor<4xf32>\n"
                     "    %y = xf.slice %w from 4 : tensor<8xf32> to tensor<4xf32>\n"),
            Extent::Unknown);
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
