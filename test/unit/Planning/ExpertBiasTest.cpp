// The biases of selected experts as what a patch changes, where the experts' matrices are frozen.
#include "../Transforms/Blocks.h"
#include "ctxc/Planning/PlanCost.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A mixture of two matrices, `matrix` "frozen" or not, and a bias for each expert; `selection` is
/// of two of the four, and `weights` are theirs.
std::string biasedExperts(
    const std::string &matrix, const std::string &bias = "",
    const std::string &selection = "    %s = xf.top_k %l k 2 : tensor<4xf32>\n",
    const std::string &weights = "    %g = xf.gather %l[%s] : tensor<4xf32>, tensor<2xi32>\n"
                                 "    %w = xf.softmax %g : tensor<2xf32>\n") {
  return R"(xf.block @b(%x: tensor<6xf32>, %i: tensor<2xi32>) -> tensor<6xf32> {
    %K = xf.param "conv" : tensor<6x3xf32>
    %c = xf.conv %K, %x : tensor<6x3xf32>, tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %R = xf.param "router" : tensor<4x6xf32>
    %l = xf.linear %R * %v : tensor<4x6xf32>, tensor<6xf32>
)" + selection +
         weights + R"(    %U = xf.param "up" )" + matrix + R"( : tensor<4x5x6xf32>
    %u = xf.expert_linear %U[%s] * %v : tensor<4x5x6xf32>, tensor<2xi32>, tensor<6xf32>
    %a = xf.activation gelu %u : tensor<2x5xf32>
    %D = xf.param "down" )" +
         matrix + R"( : tensor<4x6x5xf32>
    %d = xf.expert_linear %D[%s] * %a : tensor<4x6x5xf32>, tensor<2xi32>, tensor<2x5xf32>
    %B = xf.param "bias" )" +
         bias + R"( : tensor<4x6xf32>
    %h = xf.gather %B[%s] : tensor<4x6xf32>, tensor<2xi32>
    %e = xf.add %d, %h : tensor<2x6xf32>
    %m = xf.combine %w, %e : tensor<2xf32>, tensor<2x6xf32>
    %y = xf.add %v, %m : tensor<6xf32>
    xf.yield %y : tensor<6xf32>
  })";
}

struct Judged {
  explicit Judged(const std::string &text) : blocks(text) {
    EXPECT_TRUE(bool(blocks.module)) << text;
    if (blocks.module)
      verdict = planBlock(blocks.block("b"));
  }
  std::string site() const { return Sites::name(verdict.plan.outputs.front().site); }

  Blocks blocks;
  Verdict verdict;
};

TEST(ExpertBias, TakesTheContextWhereTheMatricesCannot) {
  Judged judged(biasedExperts("frozen"));
  ASSERT_EQ(judged.verdict.kind, VerdictKind::OutputOnly);
  EXPECT_EQ(judged.site(), "bias");
  EXPECT_EQ(costOf(judged.verdict.plan).numbers, 2 * 6);
  EXPECT_EQ(costOf(judged.verdict.plan).vectorDivisions, 0);
  // The bias itself divides by nothing, and the sum of the experts by their weights' sum.
  SmallVector<xf::Obligation> needs;
  for (const PlanObligation &o : judged.verdict.plan.obligations)
    needs.push_back(o.kind);
  EXPECT_EQ(needs, (SmallVector<xf::Obligation>{xf::Obligation::None, xf::Obligation::NonzeroSum}));
}

TEST(ExpertBias, ComesAfterTheMatricesWhereTheseCan) {
  Judged judged(biasedExperts(""));
  ASSERT_TRUE(judged.verdict.isSuccess());
  EXPECT_EQ(judged.site(), "down");
}

TEST(ExpertBias, IsNoPlanWhereItCannotReachEveryTarget) {
  EXPECT_FALSE(Judged(biasedExperts("frozen", "frozen")).verdict.isSuccess());
  // Indices that come from outside may name a row twice.
  std::string given = biasedExperts("frozen", "", "");
  for (size_t at; (at = given.find("[%s]")) != std::string::npos;)
    given.replace(at, 4, "[%i]");
  EXPECT_FALSE(Judged(given).verdict.isSuccess());
  // Weights that are zero weigh nothing.
  EXPECT_FALSE(Judged(biasedExperts("frozen", "", "    %s = xf.top_k %l k 2 : tensor<4xf32>\n",
                                    "    %g = xf.gather %l[%s] : tensor<4xf32>, tensor<2xi32>\n"
                                    "    %w = xf.sub %g, %g : tensor<2xf32>\n"))
                   .verdict.isSuccess());
}

} // namespace
