// Keys and values that are kept in bfloat16.
#include "Fixture.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Runtime/CompiledRun.h"
#include "test/unit/ExecutorContract.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// A family's golden model, in this and in the ordinary form.
struct RoundedCache : testing::TestWithParam<const char *> {
  RoundedCache()
      : rounded(GetParam(), patch::UpdateKind::least, {}, /*compile=*/false),
        exact(GetParam(), patch::UpdateKind::least, {}, /*compile=*/false) {
    kernel::markRoundedStates(*rounded.imported.module);
    tokens = exact.golden().first;
  }

  static std::unique_ptr<Executor> compile(Model &model, int threads, int64_t chunk = 0) {
    CompiledOptions options;
    options.threads = threads;
    options.promptChunk = chunk;
    auto made = createCompiledExecutor(model.program, *model.weights, options);
    EXPECT_TRUE(bool(made)) << llvm::toString(made.takeError());
    return made ? std::move(*made) : nullptr;
  }
  Numbers forward(Executor &executor, ctxc::Run &run, size_t from, size_t count) {
    ForwardOptions options;
    options.allLogits = true;
    auto positions = upTo(tokens.size());
    auto logits = executor.forward(run, llvm::ArrayRef(tokens).slice(from, count),
                                   llvm::ArrayRef(positions).slice(from, count), options);
    EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    return logits ? *logits : Numbers();
  }
  Numbers all(Executor &executor) {
    auto run = executor.start(tokens.size());
    return forward(executor, *run, 0, tokens.size());
  }

  Model rounded, exact;
  std::vector<int64_t> tokens;
};

size_t bytesOf(const ctxc::Run &run) {
  size_t bytes = 0;
  for (const StepState &step : static_cast<const CompiledRun &>(run).steps)
    for (const SlotMemory &memory : step.memories)
      bytes += memory.bytes.size();
  return bytes;
}

/// Where the executors' sums differ, a few numbers fall on the other side of a rounding.
TEST_P(RoundedCache, IsThatOfTheReference) {
  Numbers expected = all(*rounded.reference), found = all(*compile(rounded, 2));
  double effect = largestDifference(expected, all(*exact.reference));
  EXPECT_GT(effect, 1e-4);
  EXPECT_LT(largestDifference(found, expected), 0.2 * effect);
}

TEST_P(RoundedCache, HasTheSameBitsForAnyThreadsAndChunks) {
  Numbers expected = all(*compile(rounded, 1));
  EXPECT_EQ(all(*compile(rounded, 3, /*chunk=*/3)), expected);
  auto executor = compile(rounded, 2);
  auto run = executor->start(tokens.size());
  Numbers single;
  for (size_t at = 0; at < tokens.size(); ++at)
    llvm::append_range(single, forward(*executor, *run, at, 1));
  EXPECT_EQ(single, expected);
}

TEST_P(RoundedCache, TakesHalfTheMemory) {
  auto executor = compile(rounded, 1), other = compile(exact, 1);
  auto run = executor->start(100), otherRun = other->start(100);
  forward(*executor, *run, 0, 5);
  forward(*other, *otherRun, 0, 5);
  EXPECT_GT(bytesOf(*run), 0u);
  EXPECT_EQ(2 * bytesOf(*run), bytesOf(*otherRun));
}

/// A patched token gives what the full run gives, which reads rounded keys and values as well.
TEST_P(RoundedCache, PatchesAreAsExactAsOthers) {
  auto executor = compile(rounded, 2);
  auto full = executor->start(tokens.size()), reduced = executor->start(1);
  int64_t last = tokens.size() - 1;
  forward(*executor, *full, 0, last);
  PatchOptions options;
  options.logits = true;
  auto step = executor->patch(*full, *reduced, tokens[last], last, options);
  ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
  ForwardOptions patched;
  patched.patch = &step->patch;
  auto alone = executor->start(1);
  auto logits = executor->forward(*alone, tokens[last], last, patched);
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  EXPECT_LT(largestDifference(*logits, step->fullLogits.doubles()), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Families, RoundedCache, testing::Values("gemma3", "falcon"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
