// A model on NVIDIA's device: what is launched for a token, and what goes wrong in the middle.
#include "test/unit/CUDA/Fake/FakeCuda.h"
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
  // The first was launched kernel by kernel, and all were captured once.
  EXPECT_EQ(fake_cuda::countOf("cuGraphInstantiateWithFlags"), 1);
  EXPECT_EQ(fake_cuda::countOf("cuGraphLaunch"), 3);
  size_t each = fake_cuda::kernels().size() / 4;
  EXPECT_EQ(size_t(fake_cuda::countOf("cuLaunchKernel")), 2 * each);
}

TEST(CudaExecutor, SaysHowMuchMemoryWeightsNeed) {
  fake_cuda::options().memory = 1000;
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
  fake_cuda::options().faultingKernel = "ctxc_llama_1_contract";
  fake_cuda::options().faultingLaunch = 2; // the second layer's
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
