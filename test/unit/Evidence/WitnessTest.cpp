// Counterexamples are built, stored, evaluated again, and not beaten by a blind search, which finds
// a patch where there is one.
#include "ctxc/Evidence/Witness.h"
#include "../Transforms/Blocks.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace mlir;

namespace {

/// x + attn(norm x), then v + `branch` of %d, the output of the MLP's outer matrix; `branch`
/// defines %r.
std::string ending(StringRef name, const std::string &branch) {
  return block(name, rmsNorm("x", "h", "in.norm") + attention + add("w", "x", "a") +
                         rmsNorm("w", "z", "pre.norm") + gatedMlp + branch + add("y", "w", "r"));
}

struct Case {
  const char *name;
  std::string branch;
};

std::vector<Case> rejected() {
  return {
      {"rms", "    %r = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>\n"},
      {"rms_eps_0", "    %r = xf.normalize rms %d eps 0.0 : tensor<6xf32>\n"},
      {"layer", "    %r = xf.normalize layer %d eps 1.0e-05 : tensor<6xf32>\n"},
      {"l2", "    %r = xf.normalize l2 %d eps 1.0e-06 : tensor<6xf32>\n"},
      {"fixed_scale", "    %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>\n"
                      "    %m = xf.param \"m\" frozen : tensor<6xf32>\n"
                      "    %r = xf.scale %n by %m : tensor<6xf32>, tensor<6xf32>\n"},
      {"cap", "    %r = xf.softcap %d at 5.0 : tensor<6xf32>\n"},
      {"sigmoid", "    %r = xf.activation sigmoid %d : tensor<6xf32>\n"},
      {"relu", "    %r = xf.activation relu %d : tensor<6xf32>\n"},
      {"zero", "    %r = xf.times %d by 0.0 : tensor<6xf32>\n"},
      {"narrow", "    %N = xf.param \"a\" : tensor<2x6xf32>\n"
                 "    %B = xf.param \"b\" frozen : tensor<6x2xf32>\n"
                 "    %l = xf.linear %N * %d : tensor<2x6xf32>, tensor<6xf32>\n"
                 "    %r = xf.linear %B * %l : tensor<6x2xf32>, tensor<2xf32>\n"},
  };
}

std::optional<Witness> find(xf::BlockOp block) {
  auto witness = findWitness(block, {}, {});
  if (witness)
    return std::move(*witness);
  ADD_FAILURE() << llvm::toString(witness.takeError());
  return std::nullopt;
}

Replay replay(const Witness &witness, MLIRContext &context) {
  auto result = replayWitness(witness, context);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

TEST(Witness, IsFoundReplaysAndIsNotBeaten) {
  for (const Case &c : rejected()) {
    SCOPED_TRACE(c.name);
    Blocks blocks(ending(c.name, c.branch));
    ASSERT_TRUE(blocks.module);
    xf::BlockOp block = blocks.block(c.name);
    EXPECT_EQ(planBlock(block).kind, VerdictKind::Rejected);
    std::optional<Witness> witness = find(block);
    ASSERT_TRUE(witness);
    EXPECT_GT(witness->leastError, 0.1 * witness->change());
    Replay again = replay(*witness, blocks.context);
    EXPECT_TRUE(again.confirms(*witness));
    EXPECT_EQ(again.difference, 0);
    ASSERT_TRUE(again.search);
    // The bound is sharp: the search comes as close as the bound allows.
    EXPECT_GE(again.search->error, witness->leastError * (1 - 1e-9));
    EXPECT_LE(again.search->error, witness->leastError * 1.05);
  }
}

TEST(Witness, IsNotFoundWhereAPlanExists) {
  Blocks blocks(gemma() + llama() + parallel() + biased());
  for (StringRef name : {"gemma", "llama", "parallel", "biased"})
    EXPECT_FALSE(find(blocks.block(name))) << name.str();
}

TEST(Witness, MakesWhatTheContextBringsLarge) {
  // A wide cap allows all values that random weights produce.
  Blocks blocks(ending("cap", "    %r = xf.softcap %d at 50.0 : tensor<6xf32>\n"));
  std::optional<Witness> witness = find(blocks.block("cap"));
  ASSERT_TRUE(witness);
  EXPECT_NE(witness->scaled, "");
  EXPECT_GT(witness->leastError, 50);
  EXPECT_TRUE(replay(*witness, blocks.context).confirms(*witness));
}

TEST(Witness, SurvivesItsFile) {
  Blocks blocks(ending("rms", rejected()[0].branch) + ending("relu", rejected()[7].branch));
  std::vector<Witness> written;
  for (StringRef name : {"rms", "relu"})
    written.push_back(*find(blocks.block(name)));
  written[0].why = "a \"reason\"";
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("witness", "json", path));
  llvm::scope_exit remove([&] { llvm::sys::fs::remove(path); });
  ASSERT_FALSE(bool(writeWitnesses(written, path)));
  auto read = readWitnesses(path);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  ASSERT_EQ(read->size(), 2u);
  for (auto [a, b] : llvm::zip(written, *read)) {
    EXPECT_EQ(a.block, b.block);
    EXPECT_EQ(a.why, b.why);
    EXPECT_EQ(a.leastError, b.leastError);
    EXPECT_EQ(a.direction, b.direction);
    Replay again = replay(b, blocks.context);
    EXPECT_TRUE(again.confirms(b));
    EXPECT_EQ(again.difference, 0);
  }
}

TEST(Witness, FalseClaimsAreNotConfirmed) {
  Blocks blocks(ending("rms", rejected()[0].branch));
  const Witness good = *find(blocks.block("rms"));
  Witness bad = good;
  bad.leastError *= 1.1;
  EXPECT_FALSE(replay(bad, blocks.context).confirms(bad));
  bad = good;
  bad.direction = -bad.direction;
  EXPECT_FALSE(replay(bad, blocks.context).confirms(bad));
  bad = good;
  bad.full[0] += 1e-3;
  EXPECT_FALSE(replay(bad, blocks.context).confirms(bad));
  bad = good;
  bad.weights.front().bytes[3] ^= 0x40;
  EXPECT_FALSE(replay(bad, blocks.context).confirms(bad));
  // With the same weights and data, but a scale that may be patched, everything can be reached.
  bad = good;
  bad.block = blocks.module ? ending("rms", R"(
    %n = xf.normalize rms %d eps 1.0e-06 : tensor<6xf32>
    %m = xf.param "post.norm" : tensor<6xbf16>
    %r = xf.scale %n by %m offset 1.0 : tensor<6xf32>, tensor<6xbf16>
)")
                            : "";
  bad.weights.push_back({"post.norm", DType::BF16, {6}, std::vector<uint8_t>(12)});
  EXPECT_FALSE(replay(bad, blocks.context).confirms(bad));
}

TEST(Witness, NonsenseIsAnError) {
  Blocks blocks(ending("rms", rejected()[0].branch));
  const Witness good = *find(blocks.block("rms"));
  auto expectError = [&](Witness bad) {
    auto result = replayWitness(bad, blocks.context);
    EXPECT_FALSE(bool(result));
    llvm::consumeError(result.takeError());
  };
  Witness bad = good;
  bad.direction.setZero();
  expectError(bad);
  bad = good;
  bad.direction.resize(3);
  bad.direction.setOnes();
  expectError(bad);
  bad = good;
  bad.weights.clear();
  expectError(bad);
  bad = good;
  bad.sample.full.front() = reference::Matrix::Zero(2, 6);
  expectError(bad);
  bad = good;
  bad.sample.context.clear();
  bad.sample.full.clear();
  bad.sample.reduced.clear();
  expectError(bad);
  bad = good;
  bad.block = "xf.model @m { xf.yield }";
  blocks.context.getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  expectError(bad);
}

TEST(PatchSearch, FindsAPatchWhereThereIsOne) {
  // Also through a tied matrix, which no plan patches.
  Blocks blocks(gemma() + llama() + biased() +
                block("tied", rmsNorm("x", "h", "in.norm") + attention + add("w", "x", "a") + R"(
    %W1 = xf.param "fc" : tensor<6x6xf32>
    %W2 = xf.param "fc" : tensor<6x6xf32>
    %l = xf.linear %W1 * %w : tensor<6x6xf32>, tensor<6xf32>
    %s = xf.activation gelu %l : tensor<6xf32>
    %o = xf.linear %W2 * %s : tensor<6x6xf32>, tensor<6xf32>
)" + add("y", "w", "o")));
  std::unique_ptr<Weights> weights = randomWeights(1);
  for (StringRef name : {"gemma", "llama", "biased", "tied"}) {
    xf::BlockOp block = blocks.block(name);
    auto found = searchPatch(block, {}, randomSample(block, {}), *weights, {});
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
    EXPECT_LT(found->error, 1e-9) << name.str();
    EXPECT_GT(found->numbers, 0);
  }
}

} // namespace

// What patches leave may be far larger than the target, and so may be what its sums are rounded by.
TEST(Witness, IsConfirmedWithinRoundingsOfWhatIsLeft) {
  Witness witness;
  witness.full = Eigen::VectorXd::Ones(2);
  witness.leastError = 1e20;
  Replay replay;
  replay.difference = 0;
  replay.leastError = witness.leastError;
  replay.search.emplace();
  replay.search->error = witness.leastError * (1 - 1e-11);
  EXPECT_TRUE(replay.confirms(witness));
  replay.search->error = witness.leastError * (1 - 1e-3);
  EXPECT_FALSE(replay.confirms(witness));
}
