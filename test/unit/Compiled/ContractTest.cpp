// The contract of Executor.h, for compiled kernels and for the reference; and threads: the caller's
// threads, and several models in several threads.
#include "test/unit/Compiled/TextModel.h"
#include "test/unit/ExecutorContract.h"
#include "test/unit/WithoutTiles.h"
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <sys/resource.h>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::test;

namespace {

const std::vector<int64_t> tokens = {3, 5, 7, 9, 11, 2, 4};

TEST(ExecutorContract, RunsBelongToOneExecutor) {
  Model model("llama"), same("llama");
  expectRefusesForeignRuns(*model.compiled, *same.compiled, tokens);
  expectRefusesForeignRuns(*model.compiled, *model.reference, tokens);
  expectRefusesForeignRuns(*model.reference, *same.reference, tokens);
  expectRefusesForeignRuns(*model.reference, *model.compiled, tokens);
}

TEST(ExecutorContract, ARunOfAnExecutorThatIsGoneIsRefused) {
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  auto run = model.reference->start(4);
  model.reference.reset(); // the next one may be at the same address
  model.reference = createReferenceExecutor(model.program, *model.weights);
  EXPECT_EQ(messageOf(model.reference->forward(*run, int64_t(3), 0, {})),
            "the run belongs to another executor; only the one that started it can continue it");
}

TEST(ExecutorContract, CallsAreCancelled) {
  Model model("llama");
  expectCancels(*model.compiled, tokens, 4);
  expectCancels(*model.reference, tokens, 40);
}

TEST(ExecutorContract, StepsRunOneByOne) {
  for (const char *family : {"llama", "gemma3", "mixtral"}) {
    SCOPED_TRACE(family);
    Model model(family);
    expectSingleSteps(*model.compiled, model.program, tokens, 0);
    auto run = model.reference->start(1);
    EXPECT_EQ(llvm::toString(logitsByStep(*model.reference, model.program, *run, {3}).takeError()),
              "this engine runs no single steps of a model; the compiled engine does");
  }
}

/// Chunks of a cancelled prompt are removed from the run.
TEST(ExecutorContract, PromptsAreCancelledBetweenChunks) {
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  CompiledOptions options;
  options.promptChunk = 2;
  auto made = createCompiledExecutor(model.program, *model.weights, options);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  expectCancels(**made, tokens, 4);
}

/// Limits the addresses of this process to `more` bytes than it has, while it lives.
class AddressLimit {
public:
  explicit AddressLimit(uint64_t more) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before);
    rlimit limit{pages * sysconf(_SC_PAGESIZE) + more, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before); }

private:
  rlimit before;
};

/// What does not fit is known before anything is computed.
TEST(ExecutorContract, AContextThatDoesNotFitIsRefused) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer has more addresses than any limit";
#endif
  Model model("llama");
  auto small = model.compiled->start(8), large = model.compiled->start(400000);
  AddressLimit limit(uint64_t(200) << 20);
  EXPECT_EQ(messageOf(model.compiled->forward(*large, int64_t(3), 0, {})),
            "a context of 400000 tokens needs 0.3 GB of memory (0.3 GB for what its tokens leave "
            "behind, 0.0 GB while it is read), and 0.2 GB are free; shorten the context, or free "
            "some memory");
  EXPECT_EQ(large->size(), 0);
  EXPECT_TRUE(bool(model.compiled->forward(*small, int64_t(3), 0, {})));
}

TEST(ExecutorContract, OneCallAtATime) {
  Model model("llama");
  expectOneCallAtATime(*model.compiled, tokens);
  expectOneCallAtATime(*model.reference, tokens);
}

/// They are the same bit for bit, with and without `append`, for all logits and for the last ones.
void expectLogitsOfAnyChunks(PromptProducts prompts) {
  Model model("llama", patch::UpdateKind::least, DType::BF16, /*compile=*/false);
  const int64_t count = 70;
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < count; ++i)
    prompt.push_back((i * i * 5 + i) % model.program.vocabulary);
  Numbers whole, last;
  for (int64_t rows : {count, int64_t(40), int64_t(32)}) {
    CompiledOptions options;
    options.promptChunk = rows;
    options.prompts = prompts;
    auto made = createCompiledExecutor(model.program, *model.weights, options);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    auto run = (*made)->start(count);
    ForwardOptions forward;
    forward.append = false;
    forward.allLogits = true;
    auto all = (*made)->forward(*run, prompt, upTo(count), forward);
    ASSERT_TRUE(bool(all)) << llvm::toString(all.takeError());
    EXPECT_EQ(run->size(), 0);
    auto one = (*made)->forward(*run, prompt, upTo(count), {});
    ASSERT_TRUE(bool(one)) << llvm::toString(one.takeError());
    EXPECT_EQ(run->size(), count);
    if (whole.empty()) {
      whole = *all;
      last = *one;
    }
    EXPECT_EQ(*all, whole) << rows << " rows";
    EXPECT_EQ(*one, last) << rows << " rows";
  }
}

TEST(ExecutorContract, LogitsDoNotDependOnChunks) {
  expectLogitsOfAnyChunks(PromptProducts::Exact);
}

TEST(ExecutorContract, SplitLogitsDoNotDependOnChunks) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  expectLogitsOfAnyChunks(PromptProducts::Split);
}

TEST(ExecutorContract, RoundedLogitsDoNotDependOnChunks) {
  if (!CpuTarget::host().bfloatPairs)
    GTEST_SKIP() << "this processor has no avx512_bf16";
  TilesOff off;
  expectLogitsOfAnyChunks(PromptProducts::Rounded);
}

TEST(ExecutorContract, LogitsInTilesDoNotDependOnChunks) {
  if (!CpuTarget::host().tiles)
    GTEST_SKIP() << "this processor has no AMX, or the system does not give it";
  expectLogitsOfAnyChunks(PromptProducts::Rounded);
}

TEST(ExecutorContract, LogitsAreOfTheTypeTheyWereComputedIn) {
  Model model("llama");
  for (Executor *executor : {model.compiled.get(), model.reference.get()}) {
    auto run = executor->start(4), again = executor->start(4);
    auto logits = executor->logits(*run, Input(3), 0, {});
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    auto doubles = executor->forward(*again, int64_t(3), 0, {});
    ASSERT_TRUE(bool(doubles)) << llvm::toString(doubles.takeError());
    EXPECT_EQ(logits->isFloat32(), executor == model.compiled.get());
    EXPECT_EQ(logits->doubles(), *doubles);
    EXPECT_EQ(logits->largest(), argmax(*doubles));
    EXPECT_EQ(int64_t(logits->size()), executor->vocabulary());
  }
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Threads that steal ranges of a few elements from each other, the last range first.
class Pool {
public:
  explicit Pool(int count) {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  ParallelFor parallelFor() {
    return {[](void *context, int64_t count, void (*body)(void *, int64_t, int64_t), void *data) {
              static_cast<Pool *>(context)->run(count, body, data);
            },
            this};
  }

  std::atomic<int64_t> calls = 0, ranges = 0;

private:
  void run(int64_t count, void (*body)(void *, int64_t, int64_t), void *data) {
    std::unique_lock<std::mutex> lock(mutex);
    ++calls;
    left = unfinished = count;
    this->body = body;
    this->data = data;
    changed.notify_all();
    changed.wait(lock, [&] { return unfinished == 0; });
  }
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isOver || left > 0; });
      if (isOver)
        return;
      int64_t end = left, begin = std::max<int64_t>(0, end - 3);
      left = begin;
      ++ranges;
      lock.unlock();
      body(data, begin, end);
      lock.lock();
      unfinished -= end - begin;
      if (unfinished == 0)
        changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  int64_t left = 0, unfinished = 0;
  void (*body)(void *, int64_t, int64_t) = nullptr;
  void *data = nullptr;
  std::vector<std::thread> threads;
};

/// The results of all kinds of calls, with a materialised patch as well.
std::vector<Numbers> allOf(Executor &executor, const std::vector<int64_t> &tokens) {
  std::vector<Numbers> all;
  for (const ContractCall &call : contractCalls(tokens)) {
    auto full = contractRun(executor, tokens), reduced = executor.start(1);
    auto numbers = call.make(executor, *full, *reduced);
    EXPECT_TRUE(bool(numbers)) << call.name << ": " << llvm::toString(numbers.takeError());
    if (numbers)
      all.push_back(std::move(*numbers));
  }
  auto full = contractRun(executor, tokens), reduced = executor.start(1);
  PatchOptions options;
  options.materialize = true;
  auto step = executor.patch(*full, *reduced, tokens[2], 2, options);
  EXPECT_TRUE(bool(step)) << llvm::toString(step.takeError());
  if (step)
    all.push_back(step->reducedLogits.doubles());
  return all;
}

std::vector<int64_t> longTokens(const Program &program) {
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < 40; ++i)
    prompt.push_back((i * i * 5 + i) % program.vocabulary);
  return prompt;
}

TEST(ExecutorThreads, AreTheCallersBitForBit) {
  Model model("gemma3", patch::UpdateKind::least, {}, /*compile=*/false);
  const std::vector<int64_t> prompt = longTokens(model.program);
  auto made = [&](const CompiledOptions &options) {
    auto executor = createCompiledExecutor(model.program, *model.weights, options);
    EXPECT_TRUE(bool(executor)) << llvm::toString(executor.takeError());
    return allOf(**executor, prompt);
  };
  CompiledOptions options;
  options.threads = 2;
  const std::vector<Numbers> expected = made(options);
  for (int count : {1, 3}) {
    Pool pool(count);
    options.parallelFor = pool.parallelFor();
    EXPECT_EQ(made(options), expected) << count << " threads";
    EXPECT_GT(pool.calls, 100);
    EXPECT_GT(pool.ranges, pool.calls);
  }
  options.parallelFor = ParallelFor();
  EXPECT_EQ(made(options), expected) << "in the calling thread";
}

/// Two models, each with a context of its own, are imported, compiled and run at the same time.
TEST(ExecutorThreads, TwoModelsInTwoThreads) {
  const char *names[] = {"gemma3", "llama"};
  auto run = [](const char *name, const ParallelFor &threads) {
    Model model(name, patch::UpdateKind::least, {}, /*compile=*/false);
    CompiledOptions options;
    options.parallelFor = threads;
    auto compiled = createCompiledExecutor(model.program, *model.weights, options);
    EXPECT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    std::vector<Numbers> all;
    for (int i = 0; i < 3; ++i)
      for (Executor *executor : {compiled->get(), model.reference.get()})
        for (Numbers &numbers : allOf(*executor, tokens))
          all.push_back(std::move(numbers));
    return all;
  };
  std::vector<Numbers> expected[2], found[2];
  for (int i : {0, 1})
    expected[i] = run(names[i], {});
  ::setenv("CTXC_KERNEL_CACHE", "off", /*overwrite=*/1);
  {
    Pool pools[] = {Pool(2), Pool(2)};
    std::thread threads[2];
    for (int i : {0, 1})
      threads[i] = std::thread([&, i] { found[i] = run(names[i], pools[i].parallelFor()); });
    for (std::thread &thread : threads)
      thread.join();
  }
  ::unsetenv("CTXC_KERNEL_CACHE");
  for (int i : {0, 1})
    EXPECT_EQ(found[i], expected[i]) << names[i];
}

/// Both executors share the program, its weights and its MLIR context.
TEST(ExecutorThreads, TwoExecutorsOfOneProgram) {
  Model model("llama");
  auto other = createCompiledExecutor(model.program, *model.weights, {});
  ASSERT_TRUE(bool(other)) << llvm::toString(other.takeError());
  Executor *executors[] = {model.compiled.get(), other->get(), model.reference.get()};
  const std::vector<int64_t> prompt = longTokens(model.program);
  std::vector<Numbers> found[3];
  std::thread threads[3];
  for (int i : {0, 1, 2})
    threads[i] = std::thread([&, i] { found[i] = allOf(*executors[i], prompt); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[2], allOf(*model.reference, prompt));
}

} // namespace
