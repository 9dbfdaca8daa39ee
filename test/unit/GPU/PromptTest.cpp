// Prompts in chunks of rows: logits and layers are the reference's, however a prompt's tokens are
// divided into chunks; and patches of all positions, each of which equals the patch that the token
// gets alone.
#include "Device.h"
#include "test/unit/PatchAll.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// The rows of a chunk in these tests: few, so that a short prompt has several chunks.
constexpr int64_t kChunk = 8;

/// `count` tokens: those of a golden, and others.
std::vector<int64_t> promptOf(Model &model, int64_t count) {
  std::vector<int64_t> tokens = model.golden().first;
  for (int64_t i = 0, given = tokens.size(); int64_t(tokens.size()) < count; ++i)
    tokens.push_back((tokens[i] * 3 + i / given) % model.program.vocabulary);
  tokens.resize(count);
  return tokens;
}

std::string nameOf(llvm::StringRef golden) {
  std::string name = golden.str();
  llvm::replace(name, '-', '_');
  return name;
}

/// Continues a run of each executor by some tokens, and compares layers and logits.
void expectSameStep(Executor &gpu, ctxc::Run &run, Executor &reference, ctxc::Run &expected,
                    Ids tokens, int64_t from, const std::string &what) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < tokens.size(); ++i)
    positions.push_back(from + i);
  expectSame(see(gpu, run, tokens, positions), see(reference, expected, tokens, positions), 1e-4,
             what);
  EXPECT_EQ(run.size(), expected.size()) << what;
}

struct GpuPrompt : testing::TestWithParam<const char *> {};

TEST_P(GpuPrompt, IsTheReferences) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam(), patch::UpdateKind::least, {}, /*compile=*/false);
  GpuOptions options;
  options.chunk = kChunk;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  const std::vector<int64_t> tokens = promptOf(model, 3 * kChunk + 7);
  for (int64_t count : {int64_t(1), int64_t(5), kChunk - 1, kChunk, kChunk + 1, 3 * kChunk + 7}) {
    auto run = gpu->start(count), expected = model.reference->start(count);
    Ids some = Ids(tokens).take_front(count);
    expectSameStep(*gpu, *run, *model.reference, *expected, some, 0, std::to_string(count));
    // The last token's logits alone are the same as its row of all logits.
    auto again = gpu->start(count), whole = gpu->start(count);
    ForwardOptions all;
    all.allLogits = true;
    auto last = gpu->forward(*again, some, upTo(count), {});
    auto rows = gpu->forward(*whole, some, upTo(count), all);
    ASSERT_TRUE(last && rows);
    EXPECT_LE(largestDifference(*last, llvm::ArrayRef(*rows).take_back(gpu->vocabulary())), 1e-4);
  }
}

/// Chunks and single tokens in one run, and some of them once more after other tokens.
TEST_P(GpuPrompt, ContinuesARun) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam(), patch::UpdateKind::least, {}, /*compile=*/false);
  GpuOptions options;
  options.chunk = kChunk;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  const std::vector<int64_t> tokens = promptOf(model, 40);
  auto run = gpu->start(40), expected = model.reference->start(40);
  auto step = [&](int64_t from, int64_t count, const char *what) {
    expectSameStep(*gpu, *run, *model.reference, *expected,
                   Ids(tokens).slice((from * 3) % (40 - count + 1), count), from, what);
  };
  step(0, 5, "a chunk that is not full");
  step(5, 1, "a token behind it");
  step(6, kChunk + 3, "a chunk and single tokens");
  for (ctxc::Run *each : {run.get(), expected.get()})
    each->truncate(7);
  step(7, 2 * kChunk + 6, "chunks after fewer tokens");
  step(29, 11, "to the last token that there is room for");
}

// They cover a window, attention parallel to the MLP, a softcap, learned positions, slopes, and
// experts.
INSTANTIATE_TEST_SUITE_P(Families, GpuPrompt,
                         testing::Values("llama", "falcon", "gemma2", "gemma3", "gpt2",
                                         "falcon-alibi", "bloom", "mixtral", "olmo2", "gpt-neo"),
                         [](const auto &info) { return nameOf(info.param); });

//===----------------------------------------------------------------------===//
// Patches of all positions
//===----------------------------------------------------------------------===//

void expectNear(const Patch &found, const Patch &expected, const std::string &what) {
  ASSERT_EQ(found.parameters.size(), expected.parameters.size()) << what;
  for (size_t i = 0; i < found.parameters.size(); ++i) {
    const ParameterPatch &a = found.parameters[i], &b = expected.parameters[i];
    ASSERT_EQ(a.parameter, b.parameter) << what;
    auto near = [&](llvm::ArrayRef<double> p, llvm::ArrayRef<double> q) {
      double scale = 0;
      for (double v : q)
        scale = std::max(scale, std::abs(v));
      EXPECT_LE(largestDifference(p, q), 2e-3 * scale + 2e-4) << what << ", " << a.parameter;
    };
    near(a.u, b.u);
    near(a.v, b.v);
    near(a.delta, b.delta);
  }
}

/// A token alone, after the tokens of `kept` that precede it: with its patch it gives the full
/// run's logits, without it others.
void expectVerified(Executor &gpu, Ids tokens, Ids kept, llvm::ArrayRef<Given> all) {
  auto run = runOf(gpu, tokens, {}, tokens.size());
  ForwardOptions whole;
  whole.allLogits = true;
  auto logits = gpu.forward(*run, tokens, upTo(tokens.size()), whole);
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  double leastControl = INFINITY;
  for (const Given &given : all) {
    int64_t at = given.token.position, vocabulary = gpu.vocabulary();
    Ids before = kept.take_while([&](int64_t k) { return k < at; });
    auto reduced = runOf(gpu, tokens, before, 1);
    ForwardOptions options;
    options.append = false;
    auto control = gpu.forward(*reduced, tokens[at], at, options);
    options.patch = &given.patch;
    auto patched = gpu.forward(*reduced, tokens[at], at, options);
    ASSERT_TRUE(patched && control);
    auto full = llvm::ArrayRef(*logits).slice(at * vocabulary, vocabulary);
    EXPECT_LE(largestDifference(*patched, full), 1e-4) << "position " << at;
    if (int64_t(before.size()) < at)
      leastControl = std::min(leastControl, largestDifference(*control, full));
  }
  EXPECT_GT(leastControl, 1e-2);
}

struct GpuPatches : testing::TestWithParam<std::pair<const char *, DType>> {};

TEST_P(GpuPatches, AreEachTokensOwn) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam().first, patch::UpdateKind::least, GetParam().second, /*compile=*/false);
  GpuOptions options;
  options.chunk = kChunk;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  const std::vector<int64_t> tokens = promptOf(model, 3 * kChunk + 6), kept = {0, 3};
  PatchEachOptions each;
  each.logits = true;
  std::vector<Given> found = patchAll(*gpu, tokens, kept, 2, each),
                     expected = patchAll(*model.reference, tokens, kept, 2, each);
  auto full = runOf(*gpu, tokens, upTo(2), tokens.size());
  for (auto [given, other] : llvm::zip(found, expected)) {
    int64_t at = given.token.position;
    std::string what = "position " + std::to_string(at);
    EXPECT_EQ(at, other.token.position);
    EXPECT_EQ(given.token.token, tokens[at]);
    expectNear(given.patch, other.patch, what + ", the reference's");
    EXPECT_LE(
        relativeDifference(given.token.fullLogits.doubles(), other.token.fullLogits.doubles()),
        1e-4)
        << what;
    EXPECT_LE(relativeDifference(given.token.reducedLogits.doubles(),
                                 other.token.reducedLogits.doubles()),
              1e-4)
        << what;
    auto reduced = runOf(*gpu, tokens, Ids(kept).take_front(at > 3 ? 2 : 1), 1);
    auto alone = gpu->patch(*full, *reduced, tokens[at], at, {});
    ASSERT_TRUE(bool(alone)) << llvm::toString(alone.takeError());
    expectNear(given.patch, alone->patch, what + ", alone");
    for (int64_t l = 0; l < model.program.layers; ++l) {
      EXPECT_EQ(given.token.obligations[l].harmful, alone->obligations[l].harmful) << what;
      EXPECT_EQ(given.token.obligations[l].harmless, alone->obligations[l].harmless) << what;
      EXPECT_NEAR(given.token.replayError[l], alone->replayError[l],
                  0.1 * alone->replayError[l] + 1e-9)
          << what;
    }
  }
  expectVerified(*gpu, tokens, kept, found);
}

INSTANTIATE_TEST_SUITE_P(Families, GpuPatches,
                         testing::Values(std::pair("llama", DType::F32),
                                         std::pair("falcon", DType::BF16),
                                         std::pair("gemma3", DType::F32),
                                         std::pair("mixtral", DType::BF16),
                                         std::pair("olmo2", DType::BF16)),
                         [](const auto &info) { return nameOf(info.param.first); });

/// An executor of a model on the device, with few rows in a chunk.
struct OnDevice {
  explicit OnDevice(std::unique_ptr<Device> device, const char *name = "llama")
      : model(name, patch::UpdateKind::least, {}, /*compile=*/false) {
    GpuOptions options;
    options.chunk = kChunk;
    gpu = onDevice(model.program, *model.weights, std::move(device), options);
  }
  Model model;
  std::unique_ptr<Executor> gpu;
};

TEST(GpuPrompts, TakeAsManyRowsAsAsked) {
  CTXC_OPEN_DEVICE(device);
  OnDevice on(std::move(device));
  ASSERT_NE(on.gpu, nullptr);
  const std::vector<int64_t> tokens = promptOf(on.model, 21);
  std::vector<Given> all = patchAll(*on.gpu, tokens, {}, 1);
  for (int64_t rows : {1, 2, 5, 100}) {
    PatchEachOptions each;
    each.chunk = rows;
    for (auto [a, b] : llvm::zip(patchAll(*on.gpu, tokens, {}, 1, each), all))
      expectNear(a.patch, b.patch, std::to_string(rows) + " rows");
  }
  // Unpatched layers see only the kept tokens, which requires going token by token.
  PatchEachOptions later;
  later.startLayer = 1;
  for (auto [a, b] : llvm::zip(patchAll(*on.gpu, tokens, {0, 3}, 1, later),
                               patchAll(*on.model.reference, tokens, {0, 3}, 1, later)))
    expectNear(a.patch, b.patch, "from layer 1 on");
}

/// The sink may use the executor for other runs: a prompt, a token, and patches of all positions.
TEST(GpuPrompts, LeaveAPassWhileOthersRun) {
  CTXC_OPEN_DEVICE(device);
  OnDevice on(std::move(device));
  ASSERT_NE(on.gpu, nullptr);
  Executor &gpu = *on.gpu;
  const std::vector<int64_t> tokens = promptOf(on.model, 19), others = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  std::vector<Given> expected = patchAll(gpu, tokens, {}, 1);
  auto full = runOf(gpu, tokens, upTo(1), 18), reduced = gpu.start(1);
  auto positions = upTo(19);
  size_t next = 0;
  llvm::Error error = gpu.patchEach(
      *full, *reduced, Ids(tokens).drop_front(), Ids(positions).drop_front(), {},
      [&](const TokenPatch &token) -> llvm::Error {
        if (next % 6 == 2)
          patchAll(gpu, others, {}, 1);
        runOf(gpu, others, upTo(9), 0);
        auto patch = token.patch();
        if (!patch)
          return patch.takeError();
        expectNear(*patch, expected[next++].patch, "position " + std::to_string(token.position));
        return llvm::Error::success();
      });
  EXPECT_EQ(llvm::toString(std::move(error)), "");
  EXPECT_EQ(next, 18u);
}

TEST(GpuPrompts, LeaveTheRunAsItWasAfterAnError) {
  CTXC_OPEN_DEVICE(device);
  OnDevice on(std::move(device));
  ASSERT_NE(on.gpu, nullptr);
  Executor &gpu = *on.gpu;
  const std::vector<int64_t> tokens = promptOf(on.model, 20);
  auto full = runOf(gpu, tokens, upTo(2), 18), reduced = gpu.start(1), roomless = gpu.start(0);
  auto positions = upTo(20);
  Ids rest = Ids(tokens).drop_front(2), at = Ids(positions).drop_front(2);
  int seen = 0;
  llvm::Error error = gpu.patchEach(*full, *reduced, rest, at, {}, [&](const TokenPatch &) {
    return ++seen < 11 ? llvm::Error::success() : llvm::createStringError("enough");
  });
  EXPECT_EQ(llvm::toString(std::move(error)), "enough");
  EXPECT_EQ(seen, 11); // in the second chunk
  EXPECT_EQ(full->size(), 2);
  auto none = [](const TokenPatch &) { return llvm::Error::success(); };
  auto refusal = [&](ctxc::Run &a, ctxc::Run &b, Ids ids, Ids where) {
    return llvm::toString(gpu.patchEach(a, b, ids, where, {}, none));
  };
  EXPECT_NE(refusal(*full, *full, rest, at).find("a run each"), std::string::npos);
  EXPECT_NE(refusal(*full, *roomless, rest, at).find("has room for 0"), std::string::npos);
  EXPECT_NE(refusal(*full, *reduced, tokens, positions).find("position"), std::string::npos);
  EXPECT_EQ(full->size(), 2);
  // Later calls are not affected.
  auto again = gpu.forward(*full, rest, at, {});
  auto fresh = runOf(gpu, tokens, upTo(2), 18);
  auto expected = gpu.forward(*fresh, rest, at, {});
  ASSERT_TRUE(again && expected);
  EXPECT_EQ(*again, *expected);
}

/// A table of learned positions ends with its last row; padding uses that row again.
constexpr int64_t kLearnedPositions = 50; // of GPT-2's golden
TEST(GpuPrompts, ReachTheLastPosition) {
  CTXC_OPEN_DEVICE(device);
  OnDevice on(std::move(device), "gpt2");
  ASSERT_NE(on.gpu, nullptr);
  const int64_t end = kLearnedPositions;
  std::vector<int64_t> tokens = promptOf(on.model, 5), positions;
  for (int64_t i = 0; i < 5; ++i)
    positions.push_back(end - 5 + i);
  auto run = on.gpu->start(5), expected = on.model.reference->start(5);
  expectSame(see(*on.gpu, *run, tokens, positions),
             see(*on.model.reference, *expected, tokens, positions), 1e-4, "the last positions");
  auto beyond = on.gpu->start(5);
  for (int64_t &position : positions)
    ++position;
  EXPECT_NE(llvm::toString(on.gpu->forward(*beyond, tokens, positions, {}).takeError()), "");
}

struct GpuChunks : testing::TestWithParam<const char *> {};

/// A token's numbers depend neither on the size of its chunk nor on its place in it.
TEST_P(GpuChunks, GiveTheSameNumbers) {
  Model model(GetParam(), patch::UpdateKind::least, {}, /*compile=*/false);
  const std::vector<int64_t> tokens = promptOf(model, 45);
  std::vector<double> expected;
  // 45 tokens are 32, and twice 8; or five times 8, and 5; or 32, and 13.
  for (auto [most, fewer] : {std::pair(32, 8), std::pair(8, 0), std::pair(32, 0)}) {
    CTXC_OPEN_DEVICE(device);
    auto gpu = onDevice(model.program, *model.weights, std::move(device), {false, most, fewer});
    ASSERT_NE(gpu, nullptr);
    auto run = gpu->start(45);
    ForwardOptions all;
    all.allLogits = true;
    auto logits = gpu->forward(*run, tokens, upTo(45), all);
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    if (expected.empty()) {
      auto reference = model.reference->start(45);
      auto theirs = model.reference->forward(*reference, tokens, upTo(45), all);
      ASSERT_TRUE(bool(theirs)) << llvm::toString(theirs.takeError());
      expected = *logits;
      EXPECT_LE(relativeDifference(expected, *theirs), 1e-4);
    }
    EXPECT_EQ(*logits, expected) << "chunks of " << most << " and " << fewer;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GpuChunks, testing::Values("llama", "gemma3"),
                         [](const auto &info) { return nameOf(info.param); });

TEST(GpuPrompts, MakePatchesInChunksOfTwoSizes) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  auto gpu = onDevice(model.program, *model.weights, std::move(device), {false, 16, 4});
  ASSERT_NE(gpu, nullptr);
  const std::vector<int64_t> tokens = promptOf(model, 23); // after the first, 16, 4, and two alone
  for (auto [a, b] :
       llvm::zip(patchAll(*gpu, tokens, {0}, 1), patchAll(*model.reference, tokens, {0}, 1)))
    expectNear(a.patch, b.patch, "position " + std::to_string(a.token.position));
}

/// A trained model, with as many rows in a chunk as the target prescribes.
TEST(GpuPrompts, TakeTheTargetsRows) {
  CTXC_OPEN_DEVICE(device);
  Model model("../../examples/models/gemma3-kjv-1m", patch::UpdateKind::least, {}, false);
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens{2};
  for (int64_t i = 1; i < 45; ++i)
    tokens.push_back((i * 131 + 7) % model.program.vocabulary);
  std::vector<Given> all = patchAll(*gpu, tokens, {}, 1);
  expectVerified(*gpu, tokens, {}, {all[0], all[20], all[43]});
}

} // namespace
