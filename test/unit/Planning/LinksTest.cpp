// What a chain cannot be solved through, and what a patch behind a part has as a condition. Only
// facts are used here; nothing is tried in numbers.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

/// v + g ⊙ what `link` makes of a matrix of `rows` rows times v.
static bool isSolvedBehind(const std::string &link, int rows) {
  std::string n = std::to_string(rows), text = R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %g = xf.activation gelu %v : tensor<6xf32>
    %W = xf.param "w" : tensor<Nx6xf32>
    %d = xf.linear %W * %v : tensor<Nx6xf32>, tensor<6xf32>
)" + link + R"(    %y = xf.add %v, %h : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
  for (size_t at; (at = text.find('N')) != std::string::npos;)
    text.replace(at, 1, n);
  Blocks blocks(text);
  EXPECT_TRUE(bool(blocks.module)) << text;
  return planBlock(blocks.block("b")).isSuccess();
}

TEST(Links, AreNotSolvedWhereAFactorLeavesNothing) {
  EXPECT_TRUE(isSolvedBehind("    %h = xf.times %d by 2.0 : tensor<6xf32>\n", 6));
  EXPECT_FALSE(isSolvedBehind("    %h = xf.times %d by 0.0 : tensor<6xf32>\n", 6));
  EXPECT_TRUE(isSolvedBehind("    %h = xf.mul %g, %d : tensor<6xf32>, tensor<6xf32>\n", 6));
  // One number moves the vector that it multiplies along a line.
  EXPECT_FALSE(isSolvedBehind("    %h = xf.mul %g, %d : tensor<6xf32>, tensor<1xf32>\n", 1));
}

/// The first half of [op u; gelu u] may vanish where the whole does not.
TEST(Links, OfAPartHaveItsZerosAsACondition) {
  for (const char *op : {"relu", "gelu"}) {
    Blocks blocks(R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %U = xf.param "up" : tensor<6x6xf32>
    %u = xf.linear %U * %v : tensor<6x6xf32>, tensor<6xf32>
    %r = xf.activation )" +
                  std::string(op) + R"( %u : tensor<6xf32>
    %s = xf.activation gelu %u : tensor<6xf32>
    %b = xf.concat %r, %s : tensor<6xf32>, tensor<6xf32>
    %p = xf.slice %b from 0 : tensor<12xf32> to tensor<6xf32>
    %D = xf.param "down" : tensor<6x6xf32>
    %d = xf.linear %D * %p : tensor<6x6xf32>, tensor<6xf32>
    %y = xf.add %v, %d : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })");
    Verdict verdict = planBlock(blocks.block("b"));
    EXPECT_TRUE(verdict.isSuccess());
    for (const PlanObligation &o : verdict.plan.obligations)
      if (Sites::name(o.site) == "down")
        EXPECT_EQ(o.likelihood, StringRef(op) == "relu" ? xf::Zeros::OpenSet : xf::Zeros::NullSet);
  }
}
