// Whole models on a device: their logits compared with transformers', and Algorithm 1 with the
// reference.
#include "Device.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct GpuModel : testing::TestWithParam<const char *> {};

TEST_P(GpuModel, GivesTransformersLogits) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam());
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  auto [tokens, expected] = model.golden();
  auto run = gpu->start(tokens.size());
  ForwardOptions options;
  options.allLogits = true;
  auto logits = gpu->forward(*run, tokens, upTo(tokens.size()), options);
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  EXPECT_LE(largestDifference(*logits, expected), 1e-4);
  EXPECT_EQ(run->size(), int64_t(tokens.size()));
}

// They cover grouped heads and a window, attention parallel to the MLP, a softcap, slopes,
// transposed matrices; and experts stored one by one, and together.
INSTANTIATE_TEST_SUITE_P(Families, GpuModel,
                         testing::Values("llama", "falcon", "gemma3", "gpt2", "falcon-alibi",
                                         "mixtral", "qwen3-moe-fused"),
                         [](const auto &info) {
                           std::string name = info.param;
                           llvm::replace(name, '-', '_');
                           return name;
                         });

struct GpuPatch : testing::TestWithParam<std::pair<const char *, DType>> {};

TEST_P(GpuPatch, IsTheReferences) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam().first, patch::UpdateKind::least, GetParam().second);
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  auto [tokens, expected] = model.golden();
  int64_t last = tokens.size() - 1;
  std::vector<PatchStep> steps;
  for (Executor *executor : {model.reference.get(), gpu.get()}) {
    auto full = executor->start(tokens.size()), reduced = executor->start(1);
    ASSERT_EQ(llvm::toString(readContext(*executor, *full, tokens)), "");
    auto step = executor->patch(*full, *reduced, tokens[last], last, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    EXPECT_EQ(full->size(), int64_t(tokens.size()));
    EXPECT_EQ(reduced->size(), 0);
    // A run that has seen only the patch gives the full run's logits.
    ForwardOptions forward;
    forward.append = false;
    forward.patch = &step->patch;
    auto patched = executor->forward(*reduced, tokens[last], last, forward);
    ASSERT_TRUE(bool(patched)) << llvm::toString(patched.takeError());
    EXPECT_LE(largestDifference(*patched, step->fullLogits.doubles()), 1e-4);
    EXPECT_LE(largestDifference(*patched, step->reducedLogits.doubles()), 1e-4);
    steps.push_back(std::move(*step));
  }
  ASSERT_EQ(steps[0].patch.parameters.size(), steps[1].patch.parameters.size());
  for (auto [a, b] : llvm::zip(steps[0].patch.parameters, steps[1].patch.parameters)) {
    EXPECT_EQ(a.parameter, b.parameter);
    EXPECT_LE(relativeDifference(b.u, a.u), 1e-3) << a.parameter;
    EXPECT_LE(relativeDifference(b.v, a.v), 1e-3) << a.parameter;
    EXPECT_LE(relativeDifference(b.delta, a.delta), 1e-3) << a.parameter;
  }
  for (int64_t l = 0; l < model.program.layers; ++l) {
    EXPECT_EQ(steps[0].obligations[l].harmful, steps[1].obligations[l].harmful) << l;
    EXPECT_NEAR(steps[0].replayError[l], steps[1].replayError[l], 0.1 * steps[0].replayError[l])
        << l;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GpuPatch,
                         testing::Values(std::pair("llama", DType::F32),
                                         std::pair("falcon", DType::BF16),
                                         std::pair("gemma3", DType::F32),
                                         std::pair("mixtral", DType::BF16),
                                         std::pair("olmo2", DType::BF16)),
                         [](const auto &info) { return std::string(info.param.first); });

// Takes each token of the context as the last one: the patched run predicts the same token as the
// full run, and the reduced run without a patch does not.
TEST(GpuExecutor, PatchesTheShippedModel) {
  CTXC_OPEN_DEVICE(device);
  Model model("../../examples/models/gemma3-kjv-1m", patch::UpdateKind::least, {}, false);
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens{2, 411, 90, 301, 77, 512};
  auto full = gpu->start(tokens.size()), reduced = gpu->start(1);
  int differ = 0;
  for (auto [at, token] : llvm::enumerate(tokens)) {
    auto step = gpu->patch(*full, *reduced, token, at, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    ForwardOptions forward;
    forward.append = false;
    auto control = gpu->forward(*reduced, token, at, forward);
    forward.patch = &step->patch;
    auto patched = gpu->forward(*reduced, token, at, forward);
    ASSERT_TRUE(patched && control);
    EXPECT_LE(largestDifference(*patched, step->fullLogits.doubles()), 1e-4) << at;
    differ += largestDifference(*control, step->fullLogits.doubles()) > 1;
    for (const LayerObligations &counts : step->obligations)
      EXPECT_EQ(counts.harmful, 0) << at;
  }
  EXPECT_GE(differ, 4);
}

TEST(GpuExecutor, EachTokensPatchIsItsOwn) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  std::vector<int64_t> tokens{5, 9, 17}, seen;
  auto full = gpu->start(3), reduced = gpu->start(1), again = gpu->start(3);
  ASSERT_EQ(llvm::toString(gpu->patchEach(*full, *reduced, tokens, upTo(3), {},
                                          [&](const TokenPatch &made) {
                                            seen.push_back(made.token);
                                            return llvm::Error::success();
                                          })),
            "");
  EXPECT_EQ(seen, tokens);
  EXPECT_EQ(full->size(), 3);
  // The head alone, applied to the final residual stream of a run, gives that run's logits.
  std::vector<double> stream;
  ForwardOptions options;
  options.observer = [&](int64_t, llvm::ArrayRef<double> rows, int64_t count) {
    EXPECT_EQ(count, 3);
    stream = rows.take_back(rows.size() / count).vec();
  };
  auto logits = gpu->forward(*again, tokens, upTo(3), options);
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  auto head = gpu->readHead(stream, 1);
  ASSERT_TRUE(bool(head)) << llvm::toString(head.takeError());
  EXPECT_EQ(*head, *logits);
}

TEST(GpuExecutor, SaysWhatItCannotDo) {
  CTXC_OPEN_DEVICE(device);
  std::string message;
  if (llvm::StringRef(device->target()).starts_with("vulkan")) {
    std::string other = device->target() == "vulkan:8" ? "vulkan:64" : "vulkan:8";
    message = llvm::toString(Device::open(other).takeError());
    EXPECT_NE(message.find("no device can run kernels"), std::string::npos) << message;
    EXPECT_EQ(llvm::toString(Device::open("vulkan:x").takeError()),
              "vulkan: found 'x', expected the lanes of a subgroup");
  }
  EXPECT_NE(llvm::toString(Device::open("metal").takeError()).find("found 'metal', expected"),
            std::string::npos);

  // Rows that are no whole blocks have no GPU form.
  BlockText b("quantised", 8);
  TextValue x = b.input();
  b.output(b.linear(b.linear(x, 250), 8, "!xf.quantized<f8e4m3>"));
  TextModel quantised(modelText({b}));
  auto refused = createGpuExecutor(quantised.program, *quantised.weights, std::move(device));
  message = llvm::toString(refused.takeError());
  EXPECT_NE(message.find("whose rows are not a multiple of 32 numbers"), std::string::npos)
      << message;
  CTXC_OPEN_DEVICE(second);
  Model gemma("gemma3");
  auto gpu = onDevice(gemma.program, *gemma.weights, std::move(second));
  ASSERT_NE(gpu, nullptr);
  auto full = gpu->start(2);
  ForwardOptions materialised;
  Patch none;
  materialised.patch = &none;
  materialised.materialize = true;
  message = llvm::toString(gpu->forward(*full, int64_t(3), 0, materialised).takeError());
  EXPECT_NE(message.find("not run on a GPU"), std::string::npos) << message;
  message = llvm::toString(gpu->forward(*full, gpu->vocabulary(), 0, ForwardOptions()).takeError());
  EXPECT_NE(message.find("out of range"), std::string::npos) << message;
  EXPECT_EQ(full->size(), 0);
}

} // namespace
