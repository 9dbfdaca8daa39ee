// A model on NVIDIA's device: the launches for a token, and failures in the middle of a call.
#include "test/fake-gpu/FakeGpu.h"
#include "test/unit/GPU/Device.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

TEST(CudaExecutor, LaunchesOneGraphAToken) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  auto run = gpu->start(4);
  for (int64_t token : {3, 5, 7, 9}) {
    auto logits = gpu->forward(*run, token, run->size(), ForwardOptions());
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  }
  // The kernels of the first token were launched one by one; then all were captured once.
  EXPECT_EQ(fake_gpu::countOf("cuGraphInstantiateWithFlags"), 1);
  EXPECT_EQ(fake_gpu::countOf("cuGraphLaunch"), 3);
  size_t each = fake_gpu::kernels().size() / 4;
  EXPECT_EQ(size_t(fake_gpu::countOf("cuLaunchKernel")), 2 * each);
}

/// How many of the kernels that ran have names with this prefix.
int64_t ranOf(llvm::StringRef prefix) {
  return llvm::count_if(fake_gpu::kernels(), [&](const std::string &name) {
    return llvm::StringRef(name).starts_with(prefix);
  });
}

std::unique_ptr<Executor> byRows(Model &model, std::unique_ptr<Device> device, int64_t rows) {
  GpuOptions options;
  options.chunk = rows;
  return onDevice(model.program, *model.weights, std::move(device), options);
}

TEST(CudaExecutor, LaunchesOneGraphAChunk) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = byRows(model, std::move(device), 8);
  ASSERT_NE(gpu, nullptr);
  const std::vector<int64_t> tokens = someTokens(22, 1);
  auto run = gpu->start(40), reduced = gpu->start(1);
  auto forward = [&](int64_t from, int64_t count) {
    auto at = upTo(from + count);
    auto logits = gpu->forward(*run, llvm::ArrayRef(tokens).take_front(count),
                               llvm::ArrayRef(at).drop_front(from), {});
    ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  };
  forward(0, 3);
  // As long as there is no prompt, only the kernels for single tokens are compiled.
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(ranOf("ctxc_rows"), 0);
  int graphs = fake_gpu::countOf("cuGraphLaunch");
  size_t before = fake_gpu::kernels().size();
  forward(3, 22); // two chunks, and a third that is padded
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 2);
  EXPECT_EQ(fake_gpu::countOf("cuGraphLaunch"), graphs + 2);
  EXPECT_GT(ranOf("ctxc_rows8_llama"), 0);
  EXPECT_EQ(ranOf("ctxc_rows8_llama") % 3, 0);
  // The head, a kernel of one row, comes after them.
  EXPECT_EQ(fake_gpu::kernels().back().find("ctxc_"), 0u);
  EXPECT_EQ(fake_gpu::kernels().back().find("ctxc_rows8"), std::string::npos);
  size_t chunks = ranOf("ctxc_rows8");
  EXPECT_LT(fake_gpu::kernels().size() - before - chunks, 10u);
  forward(25, 9); // a chunk and a token, whose kernels are already loaded
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 2);

  // Patches of all positions need the dual kernels, which are compiled now.
  auto full = gpu->start(12);
  auto at = upTo(12);
  llvm::Error error =
      gpu->patchEach(*full, *reduced, llvm::ArrayRef(tokens).take_front(12), at, {},
                     [&](const TokenPatch &token) { return token.patch().takeError(); });
  EXPECT_EQ(llvm::toString(std::move(error)), "");
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 3);
  EXPECT_GT(ranOf("ctxc_rows8_llama_dual"), 0);
  EXPECT_EQ(ranOf("ctxc_llama_dual"), 0);
}

/// Short chunks, whose kernels are compiled first, compute what would else be padding of a long
/// one.
TEST(CudaExecutor, ReadsRestsInShortChunks) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device), {false, 32, 8});
  ASSERT_NE(gpu, nullptr);
  auto run = gpu->start(80);
  int64_t shortOnes = 0, longOnes = 0;
  auto forward = [&](int64_t count, const char *what) {
    const std::vector<int64_t> tokens = someTokens(count, 1);
    auto at = upTo(run->size() + count);
    auto logits =
        gpu->forward(*run, tokens, llvm::ArrayRef(at).drop_front(run->size()), ForwardOptions());
    ASSERT_TRUE(bool(logits)) << what << ": " << llvm::toString(logits.takeError());
    shortOnes = ranOf("ctxc_rows8_");
    longOnes = ranOf("ctxc_rows32_");
  };
  forward(6, "one short chunk");
  const int64_t each = shortOnes;
  EXPECT_GT(each, 0);
  EXPECT_EQ(longOnes, 0);
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 2);
  forward(45, "a long chunk and two short ones");
  EXPECT_EQ(shortOnes, 3 * each);
  EXPECT_EQ(longOnes, each);
  EXPECT_EQ(fake_gpu::countOf("cuModuleLoadDataEx"), 3);
  forward(25, "a long chunk, since four short ones would compute as much");
  EXPECT_EQ(shortOnes, 3 * each);
  EXPECT_EQ(longOnes, 2 * each);
  forward(4, "to the last token that there is room for");
  EXPECT_EQ(shortOnes, 4 * each);
}

TEST(CudaExecutor, TakesFewerRowsWhereMemoryIsSmall) {
  Model model("llama");
  const std::vector<int64_t> tokens = someTokens(20, 1);
  const size_t plenty = size_t(1) << 30;
  size_t weights = 0, chunk = 0; // their memory, in bytes
  std::vector<double> expected;
  // With enough memory for a chunk of 32 rows, and with less; then not even a single token has
  // enough.
  for (auto [share, prefix] : {std::pair(0.0, "ctxc_rows32_"), {0.7, "ctxc_rows16_"}, {0.1, ""}}) {
    fake_gpu::reset();
    fake_gpu::options().memory = share ? weights + size_t(share * chunk) : plenty;
    CTXC_OPEN_DEVICE(device);
    Device &memory = *device;
    auto gpu = byRows(model, std::move(device), 32);
    ASSERT_NE(gpu, nullptr) << share;
    if (!share)
      weights = plenty - memory.memory();
    auto run = gpu->start(20);
    auto logits = gpu->forward(*run, tokens, upTo(20), {});
    if (!*prefix) {
      std::string message = llvm::toString(logits.takeError());
      EXPECT_NE(
          message.find("cuda:sm_90: a run of 20 tokens needs 1 MiB more of memory; Fake 0 has"),
          std::string::npos)
          << message;
      EXPECT_EQ(run->size(), 0);
      break;
    }
    ASSERT_TRUE(bool(logits)) << share << ": " << llvm::toString(logits.takeError());
    if (!share) {
      chunk = plenty - weights - memory.memory();
      expected = *logits;
    }
    EXPECT_EQ(ranOf("ctxc_rows"), ranOf(prefix)) << share;
    EXPECT_GT(ranOf(prefix), 0) << share;
    EXPECT_LE(largestDifference(*logits, expected), 1e-4) << share;
  }
}

TEST(CudaExecutor, LeavesTheRunAsItWasAfterAFaultInAChunk) {
  Model model("llama");
  const std::vector<int64_t> tokens = someTokens(22, 1);
  std::string kernel;
  int64_t each = 0;
  for (bool faults : {false, true}) {
    fake_gpu::reset();
    CTXC_OPEN_DEVICE(device);
    auto gpu = byRows(model, std::move(device), 8);
    ASSERT_NE(gpu, nullptr);
    if (faults) { // in the second chunk
      fake_gpu::options().faultingKernel = kernel;
      fake_gpu::options().faultingLaunch = each + 1;
    }
    auto run = gpu->start(22);
    auto forward = [&] {
      return llvm::toString(gpu->forward(*run, tokens, upTo(22), {}).takeError());
    };
    std::string message = forward();
    if (!faults) {
      EXPECT_EQ(message, "");
      kernel = *llvm::find_if(fake_gpu::kernels(), [](const std::string &name) {
        return llvm::StringRef(name).starts_with("ctxc_rows8_llama_");
      });
      each = ranOf(kernel) / 3;
      EXPECT_GT(each, 0);
      continue;
    }
    EXPECT_NE(message.find("cuda: running "), std::string::npos) << message;
    EXPECT_NE(message.find("8 rows"), std::string::npos) << message;
    EXPECT_NE(message.find("an illegal memory access"), std::string::npos) << message;
    EXPECT_EQ(run->size(), 0);
    EXPECT_NE(forward().find("runs nothing more after a fault"), std::string::npos);
  }
}

TEST(CudaExecutor, SaysHowMuchMemoryWeightsNeed) {
  fake_gpu::options().memory = 1000;
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = createGpuExecutor(model.program, *model.weights, std::move(device));
  EXPECT_EQ(llvm::toString(gpu.takeError()),
            "cuda:sm_90: the weights need 1 MiB of memory; Fake 0 has 0 MiB");
}

TEST(CudaExecutor, NamesTheKernelAndTheLayerOfAFault) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  fake_gpu::options().faultingKernel = "ctxc_llama_1_contract";
  fake_gpu::options().faultingLaunch = 2; // the launch of the second layer
  auto run = gpu->start(4);
  std::string fault =
      "cuda: running kernel 'ctxc_llama_1_contract' of block @llama, layer 1 "
      "failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
  auto forward = [&] {
    return llvm::toString(gpu->forward(*run, int64_t(3), 0, ForwardOptions()).takeError());
  };
  EXPECT_EQ(forward(), fault);
  EXPECT_EQ(run->size(), 0);
  EXPECT_EQ(forward(), "cuda: Fake 0 runs nothing more after a fault (" + fault + ")");
}

} // namespace
