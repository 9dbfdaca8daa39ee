// Models with convolutions and recurrences: transformers' logits, and what a run carries from token
// to token through chunks, forks, truncations and patches.
#include "Fixture.h"
#include "lib/Runtime/CompiledRun.h"
#include "test/unit/ExecutorContract.h"
#include "test/unit/Goldens.h"
#include "test/unit/PatchAll.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Mixers : testing::TestWithParam<std::string> {
  Mixers() : model(GetParam()) {
    tokens = model.golden().first;
    for (size_t i = 0, count = tokens.size(); tokens.size() < 100; ++i)
      tokens.push_back((tokens[i] * 3 + i / count) % model.program.vocabulary);
    positions = upTo(tokens.size());
  }

  Numbers read(Executor &executor, ctxc::Run &run, int64_t from, int64_t count,
               ForwardOptions options = {}) {
    options.allLogits = true;
    auto logits = executor.forward(run, llvm::ArrayRef(tokens).slice(from, count),
                                   llvm::ArrayRef(positions).slice(from, count), options);
    EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    return logits ? *logits : Numbers();
  }
  Numbers read(ctxc::Run &run, int64_t from, int64_t count, ForwardOptions options = {}) {
    return read(*model.compiled, run, from, count, options);
  }
  /// Transformers computes the delta rule in chunks of float32.
  double tolerance() const { return GetParam() == "qwen3-next" ? 5e-4 : 1e-4; }
  /// What a run that has read nothing else gives for the same tokens.
  Numbers fresh(int64_t from, int64_t count) {
    auto run = model.compiled->start(tokens.size());
    Numbers all = read(*run, 0, from + count);
    return {all.end() - count * model.program.vocabulary, all.end()};
  }

  Model model;
  std::vector<int64_t> tokens, positions;
};

TEST_P(Mixers, GiveTransformersLogits) {
  auto [own, expected] = model.golden();
  for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
    ASSERT_NE(executor, nullptr);
    auto run = executor->start(own.size());
    // Transformers computed in float32; what compiled kernels add is an error of its own.
    double errors = executor == model.reference.get() ? 1 : 2;
    EXPECT_LE(largestDifference(read(*executor, *run, 0, own.size()), expected),
              errors * tolerance());
  }
}

TEST_P(Mixers, AreTheReferences) {
  auto found = model.compiled->start(tokens.size()), given = model.reference->start(tokens.size());
  Numbers expected = read(*model.reference, *given, 0, tokens.size());
  EXPECT_LE(largestDifference(read(*found, 0, tokens.size()), expected), tolerance());
}

TEST_P(Mixers, DoNotDependOnChunksOrThreads) {
  Numbers expected = fresh(0, tokens.size());
  auto run = model.compiled->start(tokens.size());
  Numbers found;
  for (int64_t at = 0, size = 1; at < int64_t(tokens.size()); at += size, size = (size * 5) % 23) {
    size = std::min<int64_t>(size, tokens.size() - at);
    Numbers some = read(*run, at, size);
    found.insert(found.end(), some.begin(), some.end());
  }
  EXPECT_EQ(found, expected);
  for (auto [chunk, threads] : {std::pair(1, 1), {7, 3}}) {
    CompiledOptions options;
    options.promptChunk = chunk;
    options.threads = threads;
    auto other = createCompiledExecutor(model.program, *model.weights, options);
    ASSERT_TRUE(bool(other)) << llvm::toString(other.takeError());
    auto own = (*other)->start(tokens.size(), chunk == 7 ? Keeps::Seen : Keeps::All);
    EXPECT_EQ(read(**other, *own, 0, tokens.size()), expected) << chunk << ", " << threads;
  }
}

TEST_P(Mixers, ForksGoOnByThemselves) {
  auto run = model.compiled->start(tokens.size());
  read(*run, 0, 40);
  auto fork = model.compiled->copy(*run, tokens.size());
  ASSERT_TRUE(bool(fork)) << llvm::toString(fork.takeError());
  Numbers expected = fresh(40, 30);
  EXPECT_EQ(read(*run, 40, 30), expected);
  EXPECT_EQ(read(**fork, 40, 30), expected);
  EXPECT_EQ(read(**fork, 70, 5), read(*run, 70, 5));
}

TEST_P(Mixers, TruncatedRunsReadAgainWhatIsGone) {
  auto run = model.compiled->start(tokens.size());
  for (int64_t at = 0; at < 60; at += 20)
    read(*run, at, 20);
  ForwardOptions passing;
  passing.append = false;
  read(*run, 60, 30, passing);
  EXPECT_EQ(read(*run, 60, 10), fresh(60, 10));
  for (int64_t to : {60, 33, 5, 0}) { // to the start of the last call, then before it
    run->truncate(to);
    auto fork = model.compiled->copy(*run, tokens.size());
    ASSERT_TRUE(bool(fork)) << llvm::toString(fork.takeError());
    EXPECT_EQ(read(*run, to, 10), fresh(to, 10)) << to;
    EXPECT_EQ(read(**fork, to, 10), fresh(to, 10)) << to;
  }
}

/// The bytes that recurrences carry.
size_t carriedBy(const ctxc::Run &run) {
  size_t bytes = 0;
  for (const StepState &step : static_cast<const CompiledRun &>(run).steps)
    for (const CarriedState &each : step.carried)
      for (const std::vector<float> &memory : each.memories)
        bytes += memory.size() * sizeof(float);
  return bytes;
}

TEST_P(Mixers, CarryTheSameHoweverLongTheContextIs) {
  auto run = model.compiled->start(tokens.size());
  read(*run, 0, 2);
  read(*run, 2, 1);
  size_t carried = carriedBy(*run);
  EXPECT_GT(carried, 0u);
  for (int64_t at = 3; at < 90; at += 29)
    read(*run, at, 29);
  EXPECT_EQ(carriedBy(*run), carried);
}

TEST_P(Mixers, PatchesGiveTheLogitsWithTheContext) {
  ASSERT_TRUE(llvm::any_of(model.program.steps, [](ProgramStep step) { return bool(step.dual); }));
  const int64_t vocabulary = model.program.vocabulary, at = 9;
  for (std::vector<int64_t> kept : {std::vector<int64_t>(), {0, 3}}) {
    SCOPED_TRACE("kept: " + std::to_string(kept.size()));
    for (Executor *executor : {model.reference.get(), model.compiled.get()}) {
      auto full = executor->start(20), reduced = executor->start(4);
      read(*executor, *full, 0, at);
      for (int64_t position : kept)
        read(*executor, *reduced, position, 1);
      auto step = executor->patch(*full, *reduced, tokens[at], at, {});
      ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
      ForwardOptions options;
      options.append = false;
      Numbers control = read(*executor, *reduced, at, 1, options);
      options.patch = &step->patch;
      Numbers patched = read(*executor, *reduced, at, 1, options),
              whole = step->fullLogits.doubles();
      const double tolerance = executor == model.compiled.get() ? 2e-4 : 1e-8;
      EXPECT_LE(largestDifference(patched, whole), tolerance);
      EXPECT_GT(largestDifference(control, whole), 100 * tolerance);
      EXPECT_EQ(whole.size(), size_t(vocabulary));
      EXPECT_EQ(full->size(), at + 1);
      read(*executor, *full, at + 1, 2); // goes on from what the patch's token carries
    }
  }
}

TEST_P(Mixers, PatchesOfAllTokensAreThoseOfEach) {
  ASSERT_TRUE(llvm::any_of(model.program.steps, [](ProgramStep step) { return bool(step.dual); }));
  for (std::vector<int64_t> kept : {std::vector<int64_t>(), {0, 3}}) {
    std::vector<int64_t> some(tokens.begin(), tokens.begin() + 21); // more than share a kernel
    for (int64_t rows : {0, 5}) {
      PatchEachOptions options;
      options.chunk = rows;
      expectOneByOne(*model.compiled, some, kept, options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Mixers, testing::ValuesIn(allMixers()), goldenTestName);

} // namespace
