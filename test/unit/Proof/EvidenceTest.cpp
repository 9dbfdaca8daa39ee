// What does not count as evidence: parameters that are stored once and claimed twice, replays that
// did not take place, patches so large that errors have no meaning.
#include "../Transforms/Blocks.h"
#include "Fixture.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

/// A relative of gemma without norms, in one layer, with `bind`.
std::string oneLayer(const std::string &bind) {
  return llama() + R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed.weight" : tensor<6x10xf32>
    %T = xf.param "table" : tensor<11x6xf32>
    %e = xf.embed %T[%id] : tensor<11x6xf32>, tensor<i32>
    %x = xf.layer @llama(%e) at "l." )" +
         bind + R"( : (tensor<6xf32>) -> tensor<6xf32>
    %y = xf.linear %E * %x transposed : tensor<6x10xf32>, tensor<6xf32>
    xf.yield %y : tensor<10xf32>
  })";
}

proof::Proof proofOf(ModuleOp module) {
  auto made = makeProof(module, groupVerdicts(checkModel(module)), {});
  if (made)
    return *made;
  ADD_FAILURE() << llvm::toString(made.takeError());
  return {};
}

TEST(Evidence, OfATensorThatIsStoredOnceIsRefused) {
  Blocks apart(oneLayer(""));
  ASSERT_TRUE(bool(apart.module));
  proof::Proof proof = proofOf(*apart.module);
  EXPECT_TRUE(proof::checkProof(*apart.module, proof).holds());
  // The same claims about a model that stores two of the parameters as one.
  for (const char *bind :
       {"bind {gate.weight = \"l.up.weight\"}", "bind {up.weight = \"l.gate.weight\"}",
        "bind {gate.weight = \"t\", up.weight = \"t\"}"}) {
    Blocks tied(oneLayer(bind));
    ASSERT_TRUE(bool(tied.module));
    std::string problems = llvm::join(proof::checkProof(*tied.module, proof).problems, "\n");
    EXPECT_NE(problems.find("with another op of the block"), std::string::npos) << bind << problems;
  }
  // A parameter that is the model's head as well.
  Blocks head(oneLayer("bind {down.weight = \"embed.weight\"}"));
  ASSERT_TRUE(bool(head.module));
  EXPECT_FALSE(proof::checkProof(*head.module, proof).holds());
}

TEST(Evidence, OfAReplayThatWasSkippedIsNone) {
  Blocks blocks(oneLayer(""));
  proof::Proof proof = proofOf(*blocks.module);
  proof::CheckOptions structureAlone;
  structureAlone.numbers = 0;
  proof::Judgement judgement = proof::checkProof(*blocks.module, proof, structureAlone);
  EXPECT_TRUE(judgement.problems.empty());
  EXPECT_EQ(judgement.skipped, 1u);
  EXPECT_FALSE(judgement.holds());
}

TEST(Evidence, OfAConditionThatAlwaysFailsIsRefused) {
  // According to the facts alone this block is controllable, since no fact says that the entries of
  // a layer norm's result add up to zero. The replay finds it.
  Blocks blocks(R"(
  xf.block @cancelling(%x: tensor<2xf32>) -> tensor<2xf32> {
    %K = xf.param "conv" : tensor<2x3xf32>
    %c = xf.conv %K, %x : tensor<2x3xf32>, tensor<2xf32>
    %v = xf.add %x, %c : tensor<2xf32>
    %n = xf.normalize layer %v eps 1.0e-5 : tensor<2xf32>
    %l = xf.slice %n from 0 : tensor<2xf32> to tensor<1xf32>
    %r = xf.slice %n from 1 : tensor<2xf32> to tensor<1xf32>
    %h = xf.add %l, %r : tensor<1xf32>
    %W = xf.param "w" : tensor<2x1xf32>
    %d = xf.linear %W * %h : tensor<2x1xf32>, tensor<1xf32>
    %y = xf.add %v, %d : tensor<2xf32>
    xf.yield %y : tensor<2xf32>
  })");
  ASSERT_TRUE(bool(blocks.module));
  proof::Proof proof = proofOf(*blocks.module);
  EXPECT_EQ(proof.claims.front().verdict, "output-only");
  EXPECT_FALSE(proof::checkProof(*blocks.module, proof).problems.empty());
}

/// Outputs that get one stream in proportions of their own, and a vector and its opposite: whatever
/// the proportions, that is one vector, and nothing is out of reach.
TEST(Evidence, OfProportionsIsNoneOfAVector) {
  Blocks blocks(R"(
  xf.block @b(%x: tensor<6xf32>, %c: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %K = xf.param "conv" : tensor<6x3xf32>
    %a = xf.conv %K, %c : tensor<6x3xf32>, tensor<6xf32>
    %p = xf.param "p" : tensor<1x6xf32>
    %s = xf.linear %p * %a : tensor<1x6xf32>, tensor<6xf32>
    %W = xf.param "w" : tensor<6x6xf32>
    %d = xf.linear %W * %a : tensor<6x6xf32>, tensor<6xf32>
    %u = xf.mul %x, %s : tensor<6xf32>, tensor<1xf32>
    %y = xf.add %u, %d : tensor<6xf32>
    %z = xf.sub %x, %d : tensor<6xf32>
    xf.yield %y, %z : tensor<6xf32>, tensor<6xf32>
  })");
  ASSERT_TRUE(bool(blocks.module));
  std::vector<proof::Structure> structures = proof::structuresOf(*blocks.module, 0);
  proof::Cause cause{"few-vectors", {0, 1}, {1, "", 1, 0}};
  auto found = proof::distanceBeyondReach(structures.front(), proof::Claim(), "all", cause);
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  EXPECT_EQ(found->distance, 0);
  EXPECT_GT(found->change, 0.1);
}

} // namespace
