// Both executors on every golden: logits compared with transformers', and Algorithm 1 with the full
// run.
#include "Fixture.h"
#include "test/unit/Goldens.h"
#include "test/unit/WithoutTiles.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Golden : testing::TestWithParam<std::string> {};

/// An encoder's run takes all its tokens in one call; after a truncation, exactly the tokens that
/// were removed.
void expectOneCall(Model &model, llvm::ArrayRef<int64_t> tokens) {
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto run = executor->start(tokens.size() + 1);
    auto whole = executor->forward(*run, tokens, upTo(tokens.size()), {});
    ASSERT_TRUE(bool(whole)) << llvm::toString(whole.takeError());
    int64_t next = tokens.size(), last = next - 1;
    auto refusal = [&](int64_t token, int64_t position) {
      return llvm::toString(executor->forward(*run, token, position, {}).takeError());
    };
    std::string held = "tokens, which have not seen those that follow; a bidirectional model takes "
                       "all tokens of a run at once";
    EXPECT_EQ(refusal(3, next), "the run holds " + std::to_string(next) + " " + held);
    run->truncate(last);
    EXPECT_EQ(refusal(tokens[last] ^ 1, last),
              "the run holds " + std::to_string(last) + " " + held);
    auto again = executor->forward(*run, tokens[last], last, {});
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_LE(largestDifference(*whole, *again), 1e-5);
  }
}

TEST_P(Golden, FullRunAndTokenByTokenGiveTransformersLogits) {
  Model model(GetParam());
  auto [tokens, expected] = model.golden();
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    auto run = executor->start(tokens.size());
    ForwardOptions options;
    options.allLogits = true;
    auto logits = executor->forward(*run, tokens, upTo(tokens.size()), options);
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    EXPECT_LE(largestDifference(*logits, expected), 1e-4)
        << (executor == model.reference.get() ? "reference" : "compiled");
  }

  // Token by token gives the same, unless earlier tokens see later ones.
  auto run = model.compiled->start(tokens.size());
  int64_t vocabulary = model.compiled->vocabulary();
  if (model.compiled->isBidirectional())
    return expectOneCall(model, tokens);
  for (int64_t i = 0; i < int64_t(tokens.size()); ++i) {
    auto logits = model.compiled->forward(*run, tokens[i], i, {});
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    EXPECT_LE(
        largestDifference(*logits, llvm::ArrayRef(expected).slice(i * vocabulary, vocabulary)),
        1e-4)
        << i;
  }
}

/// The full run before the last of `tokens`, and the reduced run; null pointers on failure.
std::pair<std::unique_ptr<Run>, std::unique_ptr<Run>> startBoth(Executor *executor,
                                                                llvm::ArrayRef<int64_t> tokens) {
  if (!executor)
    return {};
  auto full = executor->start(tokens.size());
  if (llvm::Error error = readContext(*executor, *full, tokens)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return {};
  }
  return {std::move(full), executor->start(1)};
}

TEST_P(Golden, PatchedWithoutContextIsFullWithContext) {
  Model model(GetParam());
  auto [tokens, expected] = model.golden();
  for (bool materialize : {false, true}) {
    int64_t last = tokens.size() - 1;
    for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
      auto [full, reduced] = startBoth(executor, tokens);
      ASSERT_NE(full, nullptr);
      PatchOptions options;
      options.materialize = materialize;
      auto step = executor->patch(*full, *reduced, tokens[last], last, options);
      ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
      ForwardOptions forward;
      forward.append = false;
      auto control = executor->forward(*reduced, tokens[last], last, forward);
      ASSERT_TRUE(bool(control));
      forward.patch = &step->patch;
      forward.materialize = materialize;
      auto patched = executor->forward(*reduced, tokens[last], last, forward);
      ASSERT_TRUE(bool(patched)) << llvm::toString(patched.takeError());
      bool exact = executor == model.reference.get() && !materialize;
      EXPECT_LE(largestDifference(*patched, step->fullLogits.doubles()), exact ? 1e-9 : 1e-4);
      EXPECT_LE(largestDifference(step->reducedLogits.doubles(), *patched), exact ? 1e-9 : 1e-4);
      EXPECT_GT(largestDifference(*control, step->fullLogits.doubles()), 1.0);
      EXPECT_EQ(reduced->size(), 0);
      EXPECT_EQ(full->size(), int64_t(tokens.size()));
    }
  }
}

/// Apart from the reduced run's logits, no result depends on the reduced run's head.
TEST_P(Golden, PatchesWithoutTheReducedHead) {
  Model model(GetParam());
  auto [tokens, expected] = model.golden();
  int64_t last = tokens.size() - 1;
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto [full, reduced] = startBoth(executor, tokens);
    ASSERT_NE(full, nullptr);
    PatchOptions options;
    PatchStep with = llvm::cantFail(executor->patch(*full, *reduced, tokens[last], last, options));
    full->truncate(last);
    options.reducedHead = false;
    PatchStep without =
        llvm::cantFail(executor->patch(*full, *reduced, tokens[last], last, options));
    EXPECT_EQ(without.fullLogits, with.fullLogits);
    EXPECT_EQ(without.fullNext, with.fullNext);
    EXPECT_EQ(without.replayError, with.replayError);
    EXPECT_TRUE(without.reducedLogits.empty());
    EXPECT_EQ(without.reducedNext, -1);
    ASSERT_EQ(without.patch.parameters.size(), with.patch.parameters.size());
    for (auto [a, b] : llvm::zip(without.patch.parameters, with.patch.parameters)) {
      EXPECT_EQ(a.u, b.u);
      EXPECT_EQ(a.v, b.v);
      EXPECT_EQ(a.delta, b.delta);
    }
  }
}

void expectNear(llvm::ArrayRef<double> x, llvm::ArrayRef<double> y, const std::string &what) {
  double scale = 0;
  for (double v : x)
    scale = std::max(scale, std::abs(v));
  EXPECT_LE(largestDifference(x, y), 1e-3 * scale + 1e-6) << what;
}

TEST_P(Golden, CompiledPatchIsTheReferences) {
  Model model(GetParam());
  auto [tokens, expected] = model.golden();
  int64_t last = tokens.size() - 1;
  std::vector<PatchStep> steps;
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    auto [full, reduced] = startBoth(executor, tokens);
    ASSERT_NE(full, nullptr);
    auto step = executor->patch(*full, *reduced, tokens[last], last, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    steps.push_back(std::move(*step));
  }
  ASSERT_EQ(steps[0].patch.parameters.size(), steps[1].patch.parameters.size());
  for (auto [a, b] : llvm::zip(steps[0].patch.parameters, steps[1].patch.parameters)) {
    EXPECT_EQ(a.parameter, b.parameter);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.shape, b.shape);
    expectNear(a.u, b.u, a.parameter);
    expectNear(a.v, b.v, a.parameter);
    expectNear(a.delta, b.delta, a.parameter);
  }
  for (int64_t l = 0; l < model.program.layers; ++l) {
    EXPECT_EQ(steps[0].obligations[l].harmful, steps[1].obligations[l].harmful) << l;
    EXPECT_NEAR(steps[0].replayError[l], steps[1].replayError[l], 0.1 * steps[0].replayError[l])
        << l;
  }
}

TEST(Compiled, RefusesIdsWithoutARow) {
  Model model("llama");
  ASSERT_NE(model.compiled, nullptr);
  auto run = model.compiled->start(4), other = model.compiled->start(4);
  for (int64_t token : {int64_t(-1), model.compiled->vocabulary(), int64_t(1) << 40}) {
    EXPECT_NE(llvm::toString(model.compiled->forward(*run, token, 0, {}).takeError())
                  .find("out of range"),
              std::string::npos);
    EXPECT_NE(llvm::toString(model.compiled->patch(*run, *other, token, 0, {}).takeError())
                  .find("out of range"),
              std::string::npos);
  }
  EXPECT_EQ(run->size(), 0);
}

TEST(Compiled, RefusesPositionsWithoutARow) {
  Model model("gpt2"); // 50 learned positions
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    auto run = executor->start(4);
    EXPECT_TRUE(bool(executor->forward(*run, int64_t(3), int64_t(49), {})));
    std::string message = llvm::toString(executor->forward(*run, int64_t(3), 50, {}).takeError());
    EXPECT_NE(message.find("the table has 50 rows"), std::string::npos) << message;
  }
}

/// Compiling is slow; goldens with an older config give the same module, and are left out.
std::vector<std::string> differentGoldens() {
  std::vector<std::string> names = allGoldens();
  llvm::erase_if(names, [](llvm::StringRef name) { return name.ends_with("-older-config"); });
  return names;
}

/// Prompts of many rows, whose activations are rounded or split: logits differ from the exact ones
/// by `least` to `most` of the largest. Experts, which get one row at a time, multiply exactly.
void expectNearTheExactOnes(PromptProducts prompts, double least, double most) {
  for (std::string name : {"gemma3", "mixtral", "bert"}) {
    SCOPED_TRACE(name);
    Model model(name, patch::UpdateKind::least, DType::BF16);
    auto other = createCompiledExecutor(model.program, *model.weights, {2, prompts});
    ASSERT_TRUE(bool(other)) << llvm::toString(other.takeError());
    std::vector<int64_t> tokens = model.golden().first;
    while (tokens.size() < 20)
      tokens.push_back(tokens[tokens.size() / 2]);
    std::vector<std::vector<double>> logits;
    for (Executor *executor : {model.compiled.get(), other->get()}) {
      auto run = executor->start(tokens.size());
      auto seen = executor->forward(*run, tokens, upTo(tokens.size()), {});
      ASSERT_TRUE(bool(seen)) << llvm::toString(seen.takeError());
      logits.push_back(*seen);
    }
    double largest = 0;
    for (double logit : logits[0])
      largest = std::max(largest, std::abs(logit));
    EXPECT_GT(largestDifference(logits[0], logits[1]), least * largest);
    EXPECT_LT(largestDifference(logits[0], logits[1]), most * largest);
  }
}

TEST(RoundedPrompts, AreNearTheExactOnes) {
  if (!CpuTarget::host().bfloatPairs)
    GTEST_SKIP() << "this processor has no avx512_bf16";
  TilesOff off;
  expectNearTheExactOnes(PromptProducts::Rounded, 1e-6, 0.1);
}

TEST(RoundedPrompts, AreNearTheExactOnesInTiles) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  expectNearTheExactOnes(PromptProducts::Rounded, 1e-6, 0.1);
}

TEST(SplitPrompts, AreAsTheExactOnes) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  expectNearTheExactOnes(PromptProducts::Split, 0, 3e-6);
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(differentGoldens()), goldenTestName);

} // namespace
