// Patches for every position of a prompt in one pass: each equals, bit for bit, the patch that the
// token gets alone, and gives the full run's logits in a run of its own.
#include "Fixture.h"
#include "test/unit/Goldens.h"
#include "test/unit/PatchAll.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A separate run of each token with its patch gives the full run's logits; without it, it does
/// not.
void expectVerified(Executor &executor, Ids tokens, Ids kept, double tolerance) {
  auto run = runOf(executor, tokens, {}, tokens.size());
  ForwardOptions whole;
  whole.allLogits = true;
  auto logits = executor.forward(*run, tokens, upTo(tokens.size()), whole);
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  double leastControl = INFINITY;
  for (const Given &given : patchAll(executor, tokens, kept, 1)) {
    int64_t at = given.token.position, vocabulary = executor.vocabulary();
    auto reduced = runOf(executor, tokens, before(kept, at), 1);
    ForwardOptions options;
    options.append = false;
    auto control = executor.forward(*reduced, tokens[at], at, options);
    options.patch = &given.patch;
    auto patched = executor.forward(*reduced, tokens[at], at, options);
    ASSERT_TRUE(control && patched);
    auto full = llvm::ArrayRef(*logits).slice(at * vocabulary, vocabulary);
    EXPECT_LE(largestDifference(*patched, full), tolerance) << "position " << at;
    if (before(kept, at).size() < size_t(at))
      leastControl = std::min(leastControl, largestDifference(*control, full));
  }
  EXPECT_GT(leastControl, 100 * tolerance);
}

/// More tokens than a vector register has lanes.
std::vector<int64_t> longPrompt(Model &model) {
  std::vector<int64_t> tokens = model.golden().first;
  for (size_t i = 0, count = tokens.size(); tokens.size() < 37; ++i)
    tokens.push_back((tokens[i] * 3 + i / count) % model.program.vocabulary);
  return tokens;
}

struct PatchEach : testing::TestWithParam<std::string> {};

TEST_P(PatchEach, IsEachTokensOwnPatch) {
  Model model(GetParam());
  ASSERT_NE(model.compiled, nullptr);
  std::vector<int64_t> tokens = longPrompt(model);
  for (std::vector<int64_t> kept : {std::vector<int64_t>(), {0, 3}}) {
    SCOPED_TRACE("kept: " + std::to_string(kept.size()));
    for (int64_t rows : {0, 1, 7}) {
      PatchEachOptions options;
      options.chunk = rows;
      options.logits = rows == 7;
      expectOneByOne(*model.compiled, tokens, kept, options);
    }
    expectVerified(*model.compiled, tokens, kept, 1e-4);
  }
}

TEST_P(PatchEach, IsTheReferences) {
  Model model(GetParam());
  ASSERT_NE(model.compiled, nullptr);
  std::vector<int64_t> tokens = longPrompt(model), kept = {0, 3};
  std::vector<Given> found = patchAll(*model.compiled, tokens, kept, 1),
                     expected = patchAll(*model.reference, tokens, kept, 1);
  for (auto [a, b] : llvm::zip(found, expected)) {
    std::string what = "position " + std::to_string(b.token.position);
    if (b.token.position == 1)
      continue; // all tokens before it are kept: the patch is zero up to rounding
    ASSERT_EQ(a.patch.parameters.size(), b.patch.parameters.size()) << what;
    for (size_t i = 0; i < a.patch.parameters.size(); ++i) {
      const ParameterPatch &x = a.patch.parameters[i], &y = b.patch.parameters[i];
      EXPECT_EQ(x.parameter, y.parameter) << what;
      auto near = [&](llvm::ArrayRef<double> p, llvm::ArrayRef<double> q) {
        double scale = 0;
        for (double v : q)
          scale = std::max(scale, std::abs(v));
        EXPECT_LE(largestDifference(p, q), 2e-3 * scale + 2e-4) << what << ", " << x.parameter;
      };
      near(x.u, y.u);
      near(x.v, y.v);
      near(x.delta, y.delta);
    }
  }
  expectVerified(*model.reference, tokens, kept, 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Families, PatchEach,
                         testing::Values("llama", "gemma3", "gemma2", "mistral", "mixtral",
                                         "gpt-oss", "falcon-alibi", "bloom", "deepseek-v3", "gpt2",
                                         "opt-post-norm", "gpt-neo", "olmo2", "glm4"),
                         goldenTestName);

TEST(PatchEachPasses, UnpatchedLayersSeeTheKeptTokensAlone) {
  Model model("llama");
  ASSERT_NE(model.compiled, nullptr);
  std::vector<int64_t> tokens = longPrompt(model);
  PatchEachOptions options;
  options.startLayer = 1;
  expectOneByOne(*model.compiled, tokens, {}, options);
  expectOneByOne(*model.compiled, tokens, {0, 3}, options);
}

TEST(PatchEachPasses, ContinueARun) {
  Model model("gemma3");
  ASSERT_NE(model.compiled, nullptr);
  std::vector<int64_t> tokens = longPrompt(model);
  std::vector<Given> all = patchAll(*model.compiled, tokens, {}, 1),
                     some = patchAll(*model.compiled, tokens, {}, 4);
  for (const Given &given : some)
    expectBitEqual(given.patch, all[given.token.position - 1].patch, "continued");
}

TEST(PatchEachPasses, PatchNothingWhereThereIsNoContext) {
  Model model("llama");
  ASSERT_NE(model.compiled, nullptr);
  std::vector<int64_t> tokens = longPrompt(model);
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    std::vector<Given> all = patchAll(*executor, tokens, {}, 0);
    for (const ParameterPatch &change : all.front().patch.parameters)
      for (double u : change.u)
        EXPECT_NEAR(u, 0, 1e-6) << change.parameter;
  }
}

TEST(PatchEachPasses, LeaveTheRunAsItWasAfterAnError) {
  Model model("llama");
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    std::vector<int64_t> tokens = longPrompt(model), positions = upTo(tokens.size());
    auto full = executor->start(tokens.size()), reduced = executor->start(1);
    int seen = 0;
    PatchEachOptions options;
    options.chunk = 2;
    llvm::Error error =
        executor->patchEach(*full, *reduced, tokens, positions, options, [&](const TokenPatch &) {
          return ++seen < 4 ? llvm::Error::success() : llvm::createStringError("enough");
        });
    EXPECT_EQ(llvm::toString(std::move(error)), "enough");
    EXPECT_EQ(seen, 4);
    EXPECT_EQ(full->size(), 0);
  }
}

TEST(PatchEachPasses, RefuseWhatTheyCannotDo) {
  auto none = [](const TokenPatch &) { return llvm::Error::success(); };
  Model model("llama"), encoder("bert");
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    auto full = executor->start(2), reduced = executor->start(1), roomless = executor->start(0);
    auto refusal = [&](ctxc::Run &a, ctxc::Run &b, Ids tokens, Ids positions) {
      return llvm::toString(executor->patchEach(a, b, tokens, positions, {}, none));
    };
    EXPECT_NE(refusal(*full, *full, {1}, {0}).find("a run each"), std::string::npos);
    EXPECT_NE(refusal(*full, *reduced, {}, {}).find("no token"), std::string::npos);
    EXPECT_NE(refusal(*full, *reduced, {1, 2, 3}, {0, 1, 2}).find("has room for 2"),
              std::string::npos);
    EXPECT_NE(refusal(*full, *reduced, {1, 2}, {1, 1}).find("must increase"), std::string::npos);
    EXPECT_NE(refusal(*full, *roomless, {1, 2}, {0, 1}).find("has room for 0"), std::string::npos);
    EXPECT_NE(refusal(*full, *reduced, {int64_t(1) << 40}, {0}), "");
    EXPECT_EQ(full->size(), 0);
  }
  for (Executor *executor : {encoder.reference.get(), encoder.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    auto full = executor->start(2), reduced = executor->start(1);
    llvm::Error error =
        executor->patchEach(*full, *reduced, std::vector<int64_t>{1, 2}, {0, 1}, {}, none);
    EXPECT_NE(llvm::toString(std::move(error)).find("bidirectional"), std::string::npos);
  }
}

} // namespace
