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

proof::Proof proofOf(ModuleOp module, const ModelOptions &options = {}) {
  auto made = makeProof(module, groupVerdicts(checkModel(module, options)), options);
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

/// A matrix reads what a rotation changes of the first pair: nothing, if its frequency is 0.
std::string turnedBy(ArrayRef<const char *> frequencies) {
  std::string text = R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %a = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %v = xf.add %x, %a : tensor<4xf32>
    %h = xf.reshape %v : tensor<4xf32> to tensor<1x4xf32>
    %f = xf.setting "rope" : tensor<2xf32>
    %r = xf.rotary interleaved %h by %f : tensor<1x4xf32>, tensor<2xf32>
    %e = xf.sub %r, %h : tensor<1x4xf32>
    %t = xf.reshape %e : tensor<1x4xf32> to tensor<4xf32>
    %s = xf.slice %t from 0 : tensor<4xf32> to tensor<2xf32>
    %D = xf.param "down" : tensor<4x2xf32>
    %d = xf.linear %D * %s : tensor<4x2xf32>, tensor<2xf32>
    %y = xf.add %v, %d : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  }
  xf.model @m {
    %E = xf.param "embed" : tensor<31x4xf32>
    %id = xf.token : tensor<i32>
    %x0 = xf.embed %E[%id] : tensor<31x4xf32>, tensor<i32>
)";
  for (auto [i, f] : llvm::enumerate(frequencies))
    text += "    %x" + std::to_string(i + 1) + " = xf.layer @b(%x" + std::to_string(i) + ") at \"" +
            std::to_string(i) + ".\" settings {rope = dense<" + f +
            "> : tensor<2xf32>} : (tensor<4xf32>) -> tensor<4xf32>\n";
  return text + "    xf.yield %x" + std::to_string(frequencies.size()) + " : tensor<4xf32>\n  }\n";
}

/// A proof is about the numbers of every layer's settings.
TEST(Evidence, OfALayerIsNoneOfALayerWithOtherSettings) {
  const char *good = "[1.0, 0.0]", *other = "[0.5, 1.0]", *none = "[0.0, 1.0]";
  Blocks equal(turnedBy({good, good}));
  ASSERT_TRUE(bool(equal.module));
  proof::Proof proof = proofOf(*equal.module);
  EXPECT_EQ(proof.claims.size(), 1u);
  EXPECT_TRUE(proof::checkProof(*equal.module, proof).holds());
  for (const auto &layers : std::vector<std::vector<const char *>>{
           {good, none}, {none, good}, {none, none}, {good, other}, {other, other}}) {
    Blocks differ(turnedBy(layers));
    ASSERT_TRUE(bool(differ.module));
    EXPECT_FALSE(proof::checkProof(*differ.module, proof).holds()) << layers[0] << layers[1];
  }
  // Layers of other numbers and of one verdict have a claim each, and each is replayed.
  Blocks two(turnedBy({good, other}));
  proof = proofOf(*two.module);
  ASSERT_EQ(proof.claims.size(), 2u);
  EXPECT_EQ(groupVerdicts(checkModel(*two.module)).size(), 1u);
  proof::Judgement judgement = proof::checkProof(*two.module, proof);
  EXPECT_TRUE(judgement.holds()) << llvm::join(judgement.problems, "\n");
  // The same claims, made of the second layer as if it were the first.
  std::swap(proof.claims[0].layers, proof.claims[1].layers);
  std::string problems = llvm::join(proof::checkProof(*two.module, proof).problems, "\n");
  EXPECT_NE(problems.find("digest: found"), std::string::npos) << problems;
}

/// A rotation makes a norm's vectors 16 times as long: what patches reach is no smaller ball.
TEST(Evidence, OfABallWithoutTheAmplitudeIsRefused) {
  for (const char *eps : {"1.0e-6", "1.0e3"}) {
    Blocks blocks(std::string(R"(
    xf.block @b(%x: tensor<8xf32>) -> tensor<8xf32> {
      %K = xf.param "conv" : tensor<8x3xf32>
      %a = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
      %v = xf.add %x, %a : tensor<8xf32>
      %D = xf.param "down" : tensor<8x8xf32>
      %d = xf.linear %D * %v : tensor<8x8xf32>, tensor<8xf32>
      %n = xf.normalize rms %d eps )") +
                  eps + R"( : tensor<8xf32>
      %h = xf.reshape %n : tensor<8xf32> to tensor<2x4xf32>
      %f = xf.setting "f" : tensor<2xf32> = dense<[1.0, 0.5]> : tensor<2xf32>
      %r = xf.rotary half %h by %f amplitude 16.0 : tensor<2x4xf32>, tensor<2xf32>
      %e = xf.reshape %r : tensor<2x4xf32> to tensor<8xf32>
      %y = xf.add %v, %e : tensor<8xf32>
      xf.yield %y : tensor<8xf32>
    })");
    ASSERT_TRUE(bool(blocks.module));
    proof::Proof proof = proofOf(*blocks.module);
    ASSERT_EQ(proof.claims.front().verdict, "rejected");
    proof::Judgement judgement = proof::checkProof(*blocks.module, proof);
    EXPECT_TRUE(judgement.holds()) << llvm::join(judgement.problems, "\n");
    // The rotated value itself as the barrier, with the norm's length.
    proof::Barrier forged{"%r", "ball", std::sqrt(8.0), {}, {}};
    for (const std::string &line : proof.claims.front().text)
      if (StringRef(line).contains("xf.rotary"))
        forged.value = StringRef(line).trim().split(' ').first.str();
    proof.claims.front().behind = {forged};
    std::string problems = llvm::join(proof::checkProof(*blocks.module, proof).problems, "\n");
    EXPECT_NE(problems.find("radius: found"), std::string::npos) << problems;
  }
}

/// A factor stands behind a matrix, or behind a norm; its numbers are those of a parameter, or not
/// at hand.
static std::string withFactor(const std::string &norm, const std::string &flags) {
  return R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %a = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %v = xf.add %x, %a : tensor<4xf32>
    %D = xf.param "down" : tensor<4x4xf32>
    %d = xf.linear %D * %v : tensor<4x4xf32>, tensor<4xf32>
    %n = xf.)" +
         norm + R"(
    %C = xf.param "c" )" +
         flags + R"( : tensor<4xf32>
    %s = xf.scale %n by %C : tensor<4xf32>, tensor<4xf32>
    %y = xf.add %v, %s : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  })";
}

/// What holds for almost all numbers of a parameter does not hold for a tensor of the program.
TEST(Evidence, OfAFrozenParameterIsNoneOfAConstant) {
  const std::string norms[] = {"normalize rms %d eps 1.0e-6 : tensor<4xf32>",
                               "times %d by 2.0 : tensor<4xf32>"};
  const char *reasons[] = {"verdict: found rejected, and the numbers of 'c' are not in the file",
                           "cannot be solved: it would be divided by"};
  for (int i : {0, 1}) {
    Blocks frozen(withFactor(norms[i], "frozen")),
        constant(withFactor(norms[i], "frozen constant"));
    ASSERT_TRUE(bool(frozen.module) && bool(constant.module));
    proof::Proof good = proofOf(*frozen.module), forged = proofOf(*constant.module);
    EXPECT_TRUE(proof::checkProof(*frozen.module, good).holds());
    EXPECT_TRUE(proof::checkProof(*constant.module, forged).holds());
    ASSERT_EQ(good.claims.front().verdict, i == 0 ? "rejected" : "output-only");
    ASSERT_EQ(forged.claims.front().verdict, "undecided");
    // Another module has another text.
    std::string problems = llvm::join(proof::checkProof(*constant.module, good).problems, "\n");
    EXPECT_NE(problems.find("digest: found"), std::string::npos) << problems;
    // All that is claimed of the other, for this one.
    proof::Claim claim = good.claims.front();
    claim.digest = forged.claims.front().digest;
    claim.text = forged.claims.front().text;
    claim.frozen = forged.claims.front().frozen;
    forged.claims.front() = claim;
    problems = llvm::join(proof::checkProof(*constant.module, forged).problems, "\n");
    EXPECT_NE(problems.find(reasons[i]), std::string::npos) << problems;
  }
}

/// Wᵀ W u turns u by no more than a right angle. Where patches move u as well, as the result of a
/// matrix that is not frozen, Wᵀ W u is any vector.
TEST(Evidence, OfAHalfSpaceOfAMovedVectorIsRefused) {
  auto turned = [](const std::string &flags) {
    return R"(
  xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {
    %K = xf.param "conv" : tensor<4x3xf32>
    %c = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %v = xf.add %x, %c : tensor<4xf32>
    %A = xf.param "a" )" +
           flags + R"( : tensor<4x4xf32>
    %u = xf.linear %A * %v : tensor<4x4xf32>, tensor<4xf32>
    %W = xf.param "w" : tensor<6x4xf32>
    %h = xf.linear %W * %u : tensor<6x4xf32>, tensor<4xf32>
    %g = xf.linear %W * %h transposed : tensor<6x4xf32>, tensor<6xf32>
    %y = xf.add %v, %g : tensor<4xf32>
    xf.yield %y : tensor<4xf32>
  })";
  };
  Blocks still(turned("frozen")), moved(turned(""));
  ASSERT_TRUE(bool(still.module) && bool(moved.module));
  ModelOptions options;
  options.refute = refuteByWitness;
  proof::Proof good = proofOf(*still.module, options), forged = proofOf(*moved.module, options);
  EXPECT_TRUE(proof::checkProof(*still.module, good).holds());
  ASSERT_EQ(good.claims.front().verdict, "rejected");
  ASSERT_EQ(good.claims.front().behind.front().image, "half-space");
  ASSERT_NE(forged.claims.front().verdict, "rejected");
  // All that is claimed of the other, for this one.
  proof::Claim claim = good.claims.front();
  claim.digest = forged.claims.front().digest;
  claim.text = forged.claims.front().text;
  claim.frozen = forged.claims.front().frozen;
  claim.patchable = {"a", "w"};
  forged.claims.front() = claim;
  std::string problems = llvm::join(proof::checkProof(*moved.module, forged).problems, "\n");
  EXPECT_NE(problems.find("image: found 'half-space', expected 'anything'"), std::string::npos)
      << problems;
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

/// `ending` makes %y, and perhaps %z, of the stream %v and the hidden vector %s.
std::string withEnding(const std::string &results, const std::string &ending) {
  return "xf.block @b(%x: tensor<4xf32>) -> " + results + R"( {
    %K = xf.param "conv" : tensor<4x3xf32>
    %a = xf.conv %K, %x : tensor<4x3xf32>, tensor<4xf32>
    %v = xf.add %x, %a : tensor<4xf32>
    %U = xf.param "up" : tensor<6x4xf32>
    %u = xf.linear %U * %v : tensor<6x4xf32>, tensor<4xf32>
    %s = xf.activation gelu %u : tensor<6xf32>
    %D = xf.param "down" : tensor<4x6xf32>
    %d = xf.linear %D * %s : tensor<4x6xf32>, tensor<6xf32>
)" + ending +
         "  }";
}

/// The second output is solved for behind the first, which it reads.
const char *const twoOutputs = R"(
    %y = xf.add %v, %d : tensor<4xf32>
    %E = xf.param "other" : tensor<4x6xf32>
    %e = xf.linear %E * %s : tensor<4x6xf32>, tensor<6xf32>
    %t = xf.activation tanh %y : tensor<4xf32>
    %w = xf.sub %v, %e : tensor<4xf32>
    %z = xf.add %w, %t : tensor<4xf32>
    xf.yield %y, %z : tensor<4xf32>, tensor<4xf32>
)";

/// How a proof names the result of the op that reads the parameter, or else of the last op of a
/// kind.
std::string nameOf(Blocks &blocks, StringRef of) {
  xf::BlockOp block = blocks.block("b");
  Value found;
  for (Operation &op : block.getBody().front().without_terminator()) {
    if (op.getName().getStringRef() == of)
      found = op.getResult(0);
    if (auto param = dyn_cast<xf::ParamOp>(op); param && param.getName() == of)
      found = param->user_begin()->getResult(0);
  }
  return proof::BlockText(block).name(found).str();
}

std::string problemsOf(Blocks &blocks, const proof::Proof &proof) {
  proof::CheckOptions structureAlone;
  structureAlone.numbers = 0;
  return llvm::join(proof::checkProof(*blocks.module, proof, structureAlone).problems, "\n");
}

TEST(Evidence, OfAnOutputIsNoneOfAnother) {
  Blocks blocks(withEnding("(tensor<4xf32>, tensor<4xf32>)", twoOutputs));
  ASSERT_TRUE(bool(blocks.module));
  proof::Proof proof = proofOf(*blocks.module);
  EXPECT_EQ(problemsOf(blocks, proof), "");
  proof::Claim &claim = proof.claims.front();
  ASSERT_EQ(claim.outputs.size(), 2u);
  claim.outputs.pop_back();
  claim.parameters.pop_back();
  std::string problems = problemsOf(blocks, proof);
  EXPECT_NE(problems.find("output 1, " + nameOf(blocks, "xf.add") + ", past the cut and the goals"),
            std::string::npos)
      << problems;
}

TEST(Evidence, OfWhatWaitsForALaterPatchIsNone) {
  Blocks blocks(withEnding("(tensor<4xf32>, tensor<4xf32>)", twoOutputs));
  ASSERT_TRUE(bool(blocks.module));
  proof::Proof proof = proofOf(*blocks.module);
  proof::Claim &claim = proof.claims.front();
  ASSERT_EQ(claim.outputs.size(), 2u);
  std::swap(claim.outputs[0], claim.outputs[1]);
  std::swap(claim.parameters[1], claim.parameters[2]);
  std::string problems = problemsOf(blocks, proof);
  EXPECT_NE(problems.find("the patch of " + nameOf(blocks, "other") + " waits for that of " +
                          nameOf(blocks, "down")),
            std::string::npos)
      << problems;
}

TEST(Evidence, OfAFactorThatThePatchMovesIsNone) {
  Blocks blocks(withEnding("tensor<4xf32>", R"(
    %r = xf.activation exp %d : tensor<4xf32>
    %p = xf.mul %d, %r : tensor<4xf32>, tensor<4xf32>
    %w = xf.add %v, %p : tensor<4xf32>
    %B = xf.param "bias" : tensor<4xf32>
    %y = xf.bias %w + %B : tensor<4xf32>, tensor<4xf32>
    xf.yield %y : tensor<4xf32>
)"));
  ASSERT_TRUE(bool(blocks.module));
  proof::Proof proof = proofOf(*blocks.module);
  EXPECT_EQ(problemsOf(blocks, proof), "");
  proof::Output &output = proof.claims.front().outputs.front();
  std::string site = nameOf(blocks, "down"), factor = nameOf(blocks, "xf.mul");
  output.chain = {site, factor, nameOf(blocks, "xf.add"), nameOf(blocks, "bias")};
  output.patches = {{site, "down", "rank1", "output-matrix", "nonzero-vector", "", "null-set"}};
  proof.claims.front().parameters.back() = "down";
  std::string problems = problemsOf(blocks, proof);
  EXPECT_NE(problems.find("the patch also reaches " + factor + " by "), std::string::npos)
      << problems;
}

/// One parameter for two vectors, in a claim that changes it for both.
TEST(Evidence, OfOneParameterForSeveralVectorsIsNone) {
  struct Case {
    std::string op;
    proof::Instance patch;
  };
  const Case cases[] = {
      {"    %N = xf.param \"n\" : tensor<2x2xf32>\n"
       "    %n = xf.linear %N * %H : tensor<2x2xf32>, tensor<2x2xf32>\n",
       {"%n", "n", "rank1", "output-matrix", "nonzero-vector", "", "null-set"}},
      {"    %N = xf.param \"n\" : tensor<2xf32>\n"
       "    %n = xf.bias %H + %N : tensor<2x2xf32>, tensor<2xf32>\n",
       {"%n", "n", "delta", "output-bias", "nothing", "", ""}},
  };
  for (const Case &each : cases) {
    Blocks blocks(
        withEnding("tensor<4xf32>",
                   "    %H = xf.reshape %d : tensor<4xf32> to tensor<2x2xf32>\n" + each.op + R"(
    %f = xf.reshape %n : tensor<2x2xf32> to tensor<4xf32>
    %w = xf.add %v, %f : tensor<4xf32>
    %B = xf.param "bias" : tensor<4xf32>
    %y = xf.bias %w + %B : tensor<4xf32>, tensor<4xf32>
    xf.yield %y : tensor<4xf32>
)"));
    ASSERT_TRUE(bool(blocks.module));
    proof::Proof proof = proofOf(*blocks.module);
    proof::Output &output = proof.claims.front().outputs.front();
    output.chain = {nameOf(blocks, "n"), nameOf(blocks, "xf.reshape"), nameOf(blocks, "xf.add"),
                    nameOf(blocks, "bias")};
    output.patches = {each.patch};
    output.patches.front().op = output.chain.front();
    proof.claims.front().parameters.back() = "n";
    std::string problems = llvm::join(proof::checkProof(*blocks.module, proof).problems, "\n");
    EXPECT_NE(problems.find("several vectors"), std::string::npos) << problems;
  }
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
