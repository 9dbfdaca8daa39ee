// Which matrix shares a change with the scale behind an RMS norm: one whose result and whose norm
// nothing else reads. In each block here a patch of the matrix would change more than the scale's
// data, so that no plan may patch the two together.
#include "../Transforms/Blocks.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/Planner.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::test;

namespace {

/// x + c + m ⊙ norm(W x), with `beside` added to it.
std::string normed(llvm::StringRef kind, const std::string &beside) {
  return block("normed", R"(
    %c = xf.contextual "mix"(%x) : (tensor<6xf32>) -> tensor<6xf32>
    %v = xf.add %x, %c : tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %d = xf.linear %W * %x : tensor<6x6xf32>, tensor<6xf32>
    %n = xf.normalize )" + kind.str() +
                             R"( %d eps 1.000000e-06 : tensor<6xf32>
    %m = xf.param "m" : tensor<6xf32>
    %s = xf.scale %n by %m : tensor<6xf32>, tensor<6xf32>
)" + beside);
}

const char *const nothing = "    %y = xf.add %v, %s : tensor<6xf32>\n";
std::string besides(llvm::StringRef value) {
  return "    %b = xf.activation silu %" + value.str() +
         " : tensor<6xf32>\n    %u = xf.add %v, %b : tensor<6xf32>\n"
         "    %y = xf.add %u, %s : tensor<6xf32>\n";
}

/// Whether the scale names the matrix before its norm as one that shares its change. Then, and only
/// then, some plan patches the two together.
bool sharesTheChange(const std::string &text) {
  Blocks blocks(text);
  PlanOptions options;
  options.objective = Objective::Paper;
  xf::BlockOp block = blocks.block("normed");
  xf::ScaleOp scale = *block.getBody().getOps<xf::ScaleOp>().begin();
  bool names = cast<xf::AssignableOpInterface>(scale.getOperation()).findNormMatrix() != nullptr;
  bool shares = false, patchesTheScale = false;
  for (const PlanCandidate &candidate : enumeratePlans(block, options)) {
    EXPECT_TRUE(succeeded(checkPlan(block, candidate.plan, options, candidate.outputOnly)));
    for (const OutputPatch &output : candidate.plan.outputs) {
      patchesTheScale |= Sites::name(output.site) == "m";
      shares |= output.normMatrix != nullptr;
    }
  }
  EXPECT_TRUE(patchesTheScale);
  EXPECT_EQ(shares, names);
  return names;
}

} // namespace

TEST(NormMatrix, SharesTheChangeBeforeAnRmsNorm) {
  EXPECT_TRUE(sharesTheChange(normed("rms", nothing)));
}

TEST(NormMatrix, IsNoneBeforeANormOfAnotherKind) {
  for (const char *kind : {"layer", "l2", "sum"})
    EXPECT_FALSE(sharesTheChange(normed(kind, nothing))) << kind;
}

TEST(NormMatrix, IsNoneWhereAnotherOpReadsTheNorm) {
  EXPECT_FALSE(sharesTheChange(normed("rms", besides("n"))));
}

TEST(NormMatrix, IsNoneWhereAnotherOpReadsTheMatrixsResult) {
  EXPECT_FALSE(sharesTheChange(normed("rms", besides("d"))));
}
