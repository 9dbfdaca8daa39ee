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

/// Two outputs of the hidden vector %s and the stream %v.
static Verdict verdictOnTwo(const std::string &ending) {
  Blocks blocks(R"(xf.block @b(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %D = xf.param "d" : tensor<6x6xf32>
    %d = xf.linear %D * %x : tensor<6x6xf32>, tensor<6xf32>
    %E = xf.param "e" : tensor<6x6xf32>
    %e = xf.linear %E * %v : tensor<6x6xf32>, tensor<6xf32>
    %t = xf.activation tanh %d : tensor<6xf32>
    %u = xf.activation tanh %e : tensor<6xf32>
    %p = xf.add %v, %d : tensor<6xf32>
    %q = xf.add %v, %e : tensor<6xf32>
)" + ending + "  }");
  return planBlock(blocks.block("b"));
}

/// Each output knows what it adds once the other is solved for.
TEST(Links, OfTwoOutputsThatWaitForEachOtherAreNoPlan) {
  auto ending = [](const std::string &first, const std::string &second) {
    return "    %y = xf.add %p, %" + first + " : tensor<6xf32>\n    %z = xf.add %q, %" + second +
           " : tensor<6xf32>\n    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>\n";
  };
  EXPECT_FALSE(verdictOnTwo(ending("u", "t")).isSuccess());
  EXPECT_TRUE(verdictOnTwo(ending("x", "t")).isSuccess());
}

/// What does not depend on the context must not change either.
TEST(Links, OfAPatchThatReachesAnotherOutputAreNoPlan) {
  EXPECT_FALSE(verdictOnTwo("    xf.yield %p, %t : tensor<6xf32>, tensor<6xf32>\n").isSuccess());
  EXPECT_TRUE(verdictOnTwo("    xf.yield %p, %x : tensor<6xf32>, tensor<6xf32>\n").isSuccess());
}

/// What a chain divides by is a condition of the plan, and so is the selection that both runs
/// share.
TEST(Links, HaveTheirConditionsInThePlan) {
  auto conditionsOf = [](const std::string &text) {
    Blocks blocks(text);
    Verdict verdict = planBlock(blocks.block("b"));
    EXPECT_TRUE(verdict.isSuccess());
    std::vector<std::pair<std::string, xf::Obligation>> found;
    for (const PlanObligation &o : verdict.plan.obligations)
      found.push_back({o.site->getName().stripDialect().str(), o.kind});
    return found;
  };
  const std::string begin = R"(xf.block @b(%x: tensor<6xf32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
)",
                    end = "    xf.yield %y : tensor<6xf32>\n  }";
  auto gated = conditionsOf(begin + R"(
    %U = xf.param "up" frozen : tensor<6x6xf32>
    %u = xf.linear %U * %x : tensor<6x6xf32>, tensor<6xf32>
    %g = xf.activation gelu %u : tensor<6xf32>
    %D = xf.param "down" : tensor<6x6xf32>
    %d = xf.linear %D * %x : tensor<6x6xf32>, tensor<6xf32>
    %p = xf.mul %d, %g : tensor<6xf32>, tensor<6xf32>
    %y = xf.add %v, %p : tensor<6xf32>
)" + end);
  EXPECT_TRUE(
      llvm::is_contained(gated, std::pair(std::string("mul"), xf::Obligation::NonzeroElements)));
  auto mixed = conditionsOf(begin + R"(
    %R = xf.param "router" : tensor<4x6xf32>
    %l = xf.linear %R * %v : tensor<4x6xf32>, tensor<6xf32>
    %s = xf.top_k %l k 2 : tensor<4xf32>
    %g = xf.gather %l[%s] : tensor<4xf32>, tensor<2xi32>
    %w = xf.softmax %g : tensor<2xf32>
    %D = xf.param "down" : tensor<4x6x6xf32>
    %d = xf.expert_linear %D[%s] * %x : tensor<4x6x6xf32>, tensor<2xi32>, tensor<6xf32>
    %m = xf.combine %w, %d : tensor<2xf32>, tensor<2x6xf32>
    %y = xf.add %v, %m : tensor<6xf32>
)" + end);
  EXPECT_TRUE(
      llvm::is_contained(mixed, std::pair(std::string("top_k"), xf::Obligation::SameSelection)));
}
