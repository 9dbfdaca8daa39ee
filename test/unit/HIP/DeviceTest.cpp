// The device of AMD's HIP, on a fake of its driver: which device is chosen, that a model's code
// objects are loaded and launched with the right arguments, and the messages of failures. The code
// that both drivers share is tested with NVIDIA's (test/unit/CUDA).
#include "test/unit/GPU/Device.h"
#include "test/fake-gpu/FakeGpu.h"

using namespace ctxc;
using namespace ctxc::test;
using llvm::toString;

namespace {

std::string messageOf(llvm::StringRef target) {
  auto device = Device::open(target);
  return device ? "" : toString(device.takeError());
}

std::unique_ptr<Device> opened(std::vector<int> devices, llvm::StringRef target = "rocm") {
  fake_gpu::options().devices = std::move(devices);
  auto device = Device::open(target);
  if (device)
    return std::move(*device);
  ADD_FAILURE() << toString(device.takeError());
  return nullptr;
}

TEST(HipDevice, ChoosesByArchitecture) {
  EXPECT_EQ(opened({0x942})->target(), "rocm:gfx942");
  auto device = opened({0x803, 0x90a, 0x1100});
  EXPECT_EQ(device->target(), "rocm:gfx90a");
  EXPECT_EQ(device->name(), "Fake 1");
  EXPECT_EQ(opened({0x90a, 0x1100}, "rocm:gfx1100")->name(), "Fake 1");

  fake_gpu::options().devices = {0x90a, 0x908};
  EXPECT_EQ(messageOf("rocm:gfx942"),
            "rocm: found Fake 0 (gfx90a) and Fake 1 (gfx908), expected a device of gfx942");
  fake_gpu::options().devices = {0x803};
  EXPECT_EQ(messageOf("rocm"),
            "rocm: found Fake 0 (gfx803), expected a device of gfx90a, gfx942 or gfx1100");
  fake_gpu::options().devices = {};
  EXPECT_EQ(messageOf("rocm"), "rocm: HIP shows no device");
  EXPECT_EQ(messageOf("rocm:gfx803"), "rocm: found 'gfx803', expected gfx90a, gfx942 or gfx1100");
}

struct HipModel : testing::TestWithParam<int> {};

/// All launches pass the buffers that the code object asks for, and no more threads than it allows.
TEST_P(HipModel, LaunchesItsCodeObject) {
  auto device = opened({GetParam()});
  ASSERT_NE(device, nullptr);
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  auto full = gpu->start(4), reduced = gpu->start(1);
  for (int64_t token : {3, 5, 7}) {
    auto logits = gpu->forward(*full, token, full->size(), ForwardOptions());
    ASSERT_TRUE(bool(logits)) << toString(logits.takeError());
  }
  EXPECT_EQ(fake_gpu::countOf("cuGraphLaunch"), 2);
  EXPECT_EQ(fake_gpu::kernels()[1], "ctxc_llama_0_rows");
  auto step = gpu->patch(*full, *reduced, int64_t(9), 3, {});
  ASSERT_TRUE(bool(step)) << toString(step.takeError());
  EXPECT_EQ(fake_gpu::countOf("cuGraphInstantiateWithFlags"), 2);
}

/// The same for a prompt: it has a second code object, and a third for its patches.
TEST_P(HipModel, LaunchesItsPromptsCodeObject) {
  auto device = opened({GetParam()});
  ASSERT_NE(device, nullptr);
  Model model("gemma3");
  GpuOptions options;
  options.chunk = 32;
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  auto full = gpu->start(41), reduced = gpu->start(1);
  std::vector<int64_t> tokens = someTokens(33, 1), at = upTo(41);
  ForwardOptions all;
  all.allLogits = true;
  auto logits = gpu->forward(*full, tokens, llvm::ArrayRef(at).take_front(33), all);
  ASSERT_TRUE(bool(logits)) << toString(logits.takeError());
  EXPECT_TRUE(llvm::any_of(fake_gpu::kernels(), [](const std::string &name) {
    return llvm::StringRef(name).starts_with("ctxc_rows32_");
  }));
  tokens.resize(8);
  llvm::Error error =
      gpu->patchEach(*full, *reduced, tokens, llvm::ArrayRef(at).drop_front(33), {},
                     [&](const TokenPatch &token) { return token.patch().takeError(); });
  EXPECT_EQ(toString(std::move(error)), "");
  EXPECT_EQ(full->size(), 41);
}

INSTANTIATE_TEST_SUITE_P(Architectures, HipModel, testing::Values(0x90a, 0x942, 0x1100));

TEST(HipDevice, SaysWhatFails) {
  auto device = opened({0x942});
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(toString(device->load(std::string(64, '!'))),
            "rocm: loading the kernels for rocm:gfx942 failed: hipErrorInvalidKernelFile");
  fake_gpu::options().memory = size_t(1) << 20;
  EXPECT_EQ(toString(device->allocate(size_t(2) << 20).takeError()),
            "rocm: a buffer needs 2 MiB, Fake 0 has 1 MiB free");
  device.reset();
  fake_gpu::options().failing = "hipSetDevice";
  fake_gpu::options().failingCall = 1 + fake_gpu::countOf("hipSetDevice");
  fake_gpu::options().result = 100;
  EXPECT_EQ(messageOf("rocm"), "rocm: turning to Fake 0 failed: hipErrorNoDevice");
}

TEST(HipDevice, RefusesCodeOfAnotherArchitecture) {
  auto device = opened({0x942});
  fake_gpu::options().devices = {0x90a};
  Model model("llama");
  auto gpu = createGpuExecutor(model.program, *model.weights, std::move(device));
  EXPECT_EQ(toString(gpu.takeError()),
            "rocm: loading the kernels for rocm:gfx942 failed: hipErrorNoBinaryForGpu");
}

TEST(HipDevice, NamesTheKernelThatFaults) {
  auto device = opened({0x1100});
  Model model("llama");
  auto gpu = onDevice(model.program, *model.weights, std::move(device));
  ASSERT_NE(gpu, nullptr);
  fake_gpu::options().faultingKernel = "ctxc_llama_1_contract";
  fake_gpu::options().faultingLaunch = 2; // the launch of the second layer
  auto run = gpu->start(4);
  EXPECT_EQ(toString(gpu->forward(*run, int64_t(3), 0, ForwardOptions()).takeError()),
            "rocm: running kernel 'ctxc_llama_1_contract' of block @llama, layer 1 failed: "
            "hipErrorIllegalAddress: an illegal memory access was encountered");
}

} // namespace
