// The contract of Executor.h, on a device.
#include "Device.h"
#include "test/unit/ExecutorContract.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

const std::vector<int64_t> tokens = {3, 5, 7, 9, 11};

/// With kernels of two rows, the prompt has two chunks.
std::unique_ptr<Executor> made(Model &model, std::unique_ptr<Device> device) {
  GpuOptions options;
  options.chunk = 2;
  return onDevice(model.program, *model.weights, std::move(device), options);
}

TEST(GpuContract, RunsBelongToOneExecutor) {
  CTXC_OPEN_DEVICE(device);
  CTXC_OPEN_DEVICE(other);
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  auto gpu = made(model, std::move(device)), second = made(model, std::move(other));
  ASSERT_TRUE(gpu && second);
  expectRefusesForeignRuns(*gpu, *second, tokens);
  expectRefusesForeignRuns(*gpu, *model.reference, tokens);
}

TEST(GpuContract, CallsAreCancelled) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  auto gpu = made(model, std::move(device));
  ASSERT_NE(gpu, nullptr);
  expectCancels(*gpu, tokens, 1);
}

TEST(GpuContract, StepsRunOneByOne) {
  CTXC_OPEN_DEVICE(device);
  Model model("gemma3", patch::UpdateKind::least, {}, /*compile=*/false);
  GpuOptions options;
  options.chunk = 4; // so that the first tokens go together, and the others alone
  auto gpu = onDevice(model.program, *model.weights, std::move(device), options);
  ASSERT_NE(gpu, nullptr);
  expectSingleSteps(*gpu, model.program, {3, 5, 7, 9, 11, 2}, 1e-5);
  auto other = randomWeights(1);
  StepRows rows;
  rows.weights = other.get();
  std::vector<std::vector<float>> outputs;
  EXPECT_EQ(llvm::toString(gpu->runStep(rows, nullptr, outputs)),
            "a GPU runs a model with the weights that it was given; changed ones are run by the "
            "compiled engine");
}

TEST(GpuContract, OneCallAtATime) {
  CTXC_OPEN_DEVICE(device);
  Model model("llama", patch::UpdateKind::least, {}, /*compile=*/false);
  auto gpu = made(model, std::move(device));
  ASSERT_NE(gpu, nullptr);
  expectOneCallAtATime(*gpu, tokens);
}

} // namespace
