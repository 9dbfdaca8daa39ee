// The device of NVIDIA's driver, on a fake of the driver: which functions are called in which
// order, and the messages of calls that fail.
#include "ctxc/Runtime/GPU/Device.h"
#include "test/fake-gpu/FakeGpu.h"
#include "test/unit/CUDA/SmallKernels.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace ctxc;
using namespace ctxc::test;
using llvm::toString;

namespace {

template <typename T> std::string messageOf(llvm::Expected<T> result) {
  return result ? "" : toString(result.takeError());
}

std::unique_ptr<Device> opened(llvm::StringRef target = "cuda") {
  auto device = Device::open(target);
  if (device)
    return std::move(*device);
  ADD_FAILURE() << toString(device.takeError());
  return nullptr;
}

/// A device with two kernels and a buffer of 64 floats.
struct Loaded {
  explicit Loaded(llvm::StringRef target = "cuda") : device(opened(target)) {
    EXPECT_EQ(toString(device->load(smallModule(increment("first") + increment("second")))), "");
    auto made = device->allocate(sizeof numbers);
    EXPECT_TRUE(bool(made));
    buffer = std::move(*made);
    launches = {{"first", "block @a, layer 0", 1, 64, {buffer.get()}},
                {"second", "block @a, layer 1", 1, 64, {buffer.get()}}};
  }
  std::string upload() {
    return toString(
        device->upload(*buffer, 0, {reinterpret_cast<const char *>(numbers), sizeof numbers}));
  }
  std::string download() {
    return toString(
        device->download({reinterpret_cast<char *>(numbers), sizeof numbers}, *buffer, 0));
  }

  float numbers[64] = {};
  std::unique_ptr<Device> device;
  std::unique_ptr<Device::Buffer> buffer;
  std::vector<Device::Launch> launches;
};

TEST(CudaDevice, RunsFirstOneByOneThenAsAGraph) {
  Loaded on;
  for (int i = 0; i < 64; ++i)
    on.numbers[i] = i;
  ASSERT_EQ(on.upload(), "");
  auto sequence = on.device->record(on.launches);
  ASSERT_TRUE(bool(sequence));
  EXPECT_EQ(fake_gpu::kernels().size(), 0u); // recorded, not run
  for (int run = 1; run <= 3; ++run) {
    auto seconds = on.device->run(**sequence);
    ASSERT_TRUE(bool(seconds)) << toString(seconds.takeError());
    EXPECT_NEAR(*seconds, 2e-3, 1e-9);
    EXPECT_EQ(fake_gpu::kernels().size(), size_t(2 * run));
    EXPECT_EQ(fake_gpu::countOf("cuGraphLaunch"), run - 1);
  }
  EXPECT_EQ(fake_gpu::countOf("cuLaunchKernel"), 4); // two captured, two run
  ASSERT_EQ(on.download(), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(on.numbers[i], i + 6);
}

TEST(CudaDevice, CheckedRunsOneByOne) {
  Loaded on("cuda:sm_80:checked");
  auto sequence = on.device->record(on.launches);
  ASSERT_TRUE(bool(sequence));
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(messageOf(on.device->run(**sequence)), "");
  EXPECT_EQ(fake_gpu::countOf("cuGraphLaunch"), 0);
  ASSERT_EQ(on.download(), "");
  EXPECT_EQ(on.numbers[63], 4);
}

TEST(CudaDevice, MemoryIsZeroAndUploadsStreamThroughPinnedMemory) {
  auto device = opened();
  // More than both halves of the staging memory, in pieces that do not end where the halves end.
  std::vector<char> sent(size_t(50) << 20), got(sent.size());
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = char(i * 7 + (i >> 13));
  auto buffer = device->allocate(sent.size());
  ASSERT_TRUE(bool(buffer));
  ASSERT_EQ(toString(device->download(got, **buffer, 0)), "");
  EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](char c) { return !c; }));
  size_t at = 0;
  for (size_t piece : {size_t(3), size_t(1000), (size_t(20) << 20) + 5, sent.size()}) {
    piece = std::min(piece, sent.size() - at);
    ASSERT_EQ(toString(device->upload(**buffer, at, {sent.data() + at, piece})), "");
    at += piece;
  }
  ASSERT_EQ(toString(device->download(got, **buffer, 0)), "");
  EXPECT_EQ(got, sent);
  EXPECT_EQ(toString(device->upload(**buffer, 7, sent)),
            "cuda: an upload of 52428800 bytes at 7 exceeds a buffer of 52428800");
  EXPECT_EQ(toString(device->download(got, **buffer, 1)),
            "cuda: a download of 52428800 bytes at 1 exceeds a buffer of 52428800");
  auto none = device->allocate(0);
  ASSERT_TRUE(bool(none));
  EXPECT_EQ((*none)->bytes, 0u);
}

TEST(CudaDevice, DownloadsGoThroughPinnedMemoryTogether) {
  auto device = opened();
  std::vector<char> sent(size_t(40) << 20), got(sent.size());
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = char(i * 5 + (i >> 11));
  auto buffer = device->allocate(sent.size()), other = device->allocate(8);
  ASSERT_TRUE(buffer && other);
  ASSERT_EQ(toString(device->upload(**buffer, 0, sent)), "");
  int synchronized = fake_gpu::countOf("cuEventSynchronize");
  std::vector<Device::Piece> pieces;
  size_t at = 0;
  for (size_t bytes : {size_t(1), size_t(70), (size_t(33) << 20) + 1, size_t(0), sent.size()}) {
    bytes = std::min(bytes, sent.size() - at);
    pieces.push_back({buffer->get(), at, llvm::MutableArrayRef(got).slice(at, bytes)});
    at += bytes;
  }
  std::vector<char> zeros(8, 'x');
  pieces.push_back({other->get(), 0, zeros});
  ASSERT_EQ(toString(device->downloadAll(pieces)), "");
  EXPECT_EQ(got, sent);
  EXPECT_EQ(zeros, std::vector<char>(8));
  EXPECT_LE(fake_gpu::countOf("cuEventSynchronize") - synchronized, 5);
  ASSERT_EQ(toString(device->downloadAll({})), "");
  // The next upload is not affected.
  ASSERT_EQ(toString(device->upload(**other, 0, {sent.data() + 9, 8})), "");
  ASSERT_EQ(toString(device->download(zeros, **other, 0)), "");
  EXPECT_TRUE(std::equal(zeros.begin(), zeros.end(), sent.begin() + 9));
  EXPECT_EQ(toString(device->downloadAll(Device::Piece{other->get(), 1, zeros})),
            "cuda: a download of 8 bytes at 1 exceeds a buffer of 8");
}

TEST(CudaDevice, HoldsSeveralCodes) {
  Loaded on;
  ASSERT_EQ(toString(on.device->load(smallModule(increment("third") + increment("first")))), "");
  on.launches.push_back({"third", "block @a, 8 rows", 1, 64, {on.buffer.get()}, 1});
  on.launches.push_back({"first", "", 1, 64, {on.buffer.get()}, 1});
  auto sequence = on.device->record(on.launches);
  ASSERT_TRUE(bool(sequence)) << toString(sequence.takeError());
  for (int run = 1; run <= 2; ++run) {
    ASSERT_EQ(messageOf(on.device->run(**sequence)), "");
    ASSERT_EQ(on.download(), "");
    EXPECT_EQ(on.numbers[5], 4 * run);
  }
  on.launches.back().function = "second"; // a function of the other code
  std::string message = messageOf(on.device->record(on.launches));
  EXPECT_NE(message.find("looking up kernel 'second' failed"), std::string::npos) << message;
  on.launches.back().code = 2;
  EXPECT_EQ(messageOf(on.device->record(on.launches)),
            "cuda: kernel 'second' is of code that was not loaded");
}

TEST(CudaDevice, ChoosesByArchitecture) {
  EXPECT_EQ(opened()->target(), "cuda:sm_90");
  fake_gpu::options().devices = {75, 86, 90};
  auto device = opened();
  EXPECT_EQ(device->target(), "cuda:sm_80");
  EXPECT_EQ(device->name(), "Fake 1");
  device = opened("cuda:sm_90");
  EXPECT_EQ(device->target(), "cuda:sm_90");
  EXPECT_EQ(device->name(), "Fake 2");
  EXPECT_EQ(device->memory(), size_t(1) << 30);
  // Ranks of a machine take the devices that fit in turn.
  fake_gpu::options().devices = {70, 90, 80, 90};
  for (auto [number, name] : {std::pair(0, "Fake 1"), {1, "Fake 3"}, {2, "Fake 1"}}) {
    auto ofRank = Device::open("cuda:sm_90", number);
    ASSERT_TRUE(bool(ofRank)) << llvm::toString(ofRank.takeError());
    EXPECT_EQ((*ofRank)->name(), name);
  }
  fake_gpu::options().devices = {120};
  EXPECT_EQ(opened()->target(), "cuda:sm_90");
  EXPECT_EQ(opened("cuda:sm_80")->target(), "cuda:sm_80");

  fake_gpu::options().devices = {80};
  EXPECT_EQ(messageOf(Device::open("cuda:sm_90")),
            "cuda: found Fake 0 (sm_80), expected a device of sm_90 or later");
  fake_gpu::options().devices = {70, 75};
  EXPECT_EQ(messageOf(Device::open("cuda")),
            "cuda: found Fake 0 (sm_70) and Fake 1 (sm_75), expected a device of sm_80 or later");
  fake_gpu::options().devices = {};
  EXPECT_EQ(messageOf(Device::open("cuda")), "cuda: the driver shows no device");
  EXPECT_EQ(messageOf(Device::open("cuda:sm_70")), "cuda: found 'sm_70', expected sm_80 or sm_90");
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

struct Failure {
  const char *function;
  int call, result;
  const char *message;
};

/// Names the test's parameter.
void PrintTo(const Failure &failure, std::ostream *os) {
  *os << failure.function << " " << failure.call;
}

struct CudaFailure : testing::TestWithParam<Failure> {
  void SetUp() override {
    fake_gpu::options().failing = GetParam().function;
    fake_gpu::options().failingCall = GetParam().call;
    fake_gpu::options().result = GetParam().result;
  }
};

/// The first error of opening a device, loading code, allocating memory, recording, and running
/// twice.
std::string everything() {
  auto opening = Device::open("cuda");
  if (!opening)
    return toString(opening.takeError());
  auto device = std::move(*opening);
  if (llvm::Error error = device->load(smallModule(increment())))
    return toString(std::move(error));
  auto buffer = device->allocate(256);
  if (!buffer)
    return toString(buffer.takeError());
  std::vector<char> numbers(256);
  if (llvm::Error error = device->upload(**buffer, 0, numbers))
    return toString(std::move(error));
  Device::Launch launch{"increment", "block @a, layer 2", 1, 64, {buffer->get()}};
  auto sequence = device->record(launch);
  if (!sequence)
    return toString(sequence.takeError());
  for (int run = 0; run < 2; ++run)
    if (auto seconds = device->run(**sequence); !seconds)
      return toString(seconds.takeError());
  if (llvm::Error error = device->download(numbers, **buffer, 0))
    return toString(std::move(error));
  return "";
}

TEST_P(CudaFailure, IsSaid) { EXPECT_EQ(everything(), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    Calls, CudaFailure,
    testing::Values(
        Failure{"", 1, 0, ""},
        Failure{"cuInit", 1, 100, "cuda: starting the driver failed: CUDA_ERROR_NO_DEVICE"},
        Failure{"cuDeviceGetCount", 1, 999, "cuda: counting the devices failed: error 999"},
        Failure{"cuDeviceGetName", 1, 999, "cuda: asking device 0 what it is failed: error 999"},
        Failure{"cuDevicePrimaryCtxRetain", 1, 2,
                "cuda: opening Fake 0 failed: CUDA_ERROR_OUT_OF_MEMORY"},
        Failure{"cuCtxSetCurrent", 1, 999, "cuda: turning to Fake 0 failed: error 999"},
        Failure{"cuStreamCreate", 1, 2,
                "cuda: making a stream on Fake 0 failed: CUDA_ERROR_OUT_OF_MEMORY"},
        Failure{"cuEventCreate", 2, 2,
                "cuda: making a stream on Fake 0 failed: CUDA_ERROR_OUT_OF_MEMORY"},
        Failure{"cuMemHostAlloc", 2, 2,
                "cuda: pinning 32 MiB for uploads failed: CUDA_ERROR_OUT_OF_MEMORY"},
        Failure{"cuModuleLoadDataEx", 1, 218,
                "cuda: loading the kernels for cuda:sm_90 failed: CUDA_ERROR_INVALID_PTX"},
        Failure{"cuMemAlloc_v2", 1, 2, "cuda: a buffer needs 1 MiB, Fake 0 has 1024 MiB free"},
        Failure{"cuMemAlloc_v2", 1, 999, "cuda: allocating 1 MiB failed: error 999"},
        Failure{"cuMemsetD8Async", 1, 999, "cuda: clearing 1 MiB failed: error 999"},
        Failure{"cuMemcpyHtoDAsync_v2", 1, 999, "cuda: uploading 256 bytes failed: error 999"},
        Failure{"cuModuleGetFunction", 1, 500,
                "cuda: looking up kernel 'increment' of block @a, layer 2 failed: "
                "CUDA_ERROR_NOT_FOUND"},
        Failure{"cuFuncGetAttribute", 1, 999,
                "cuda: asking about kernel 'increment' of block @a, layer 2 failed: error 999"},
        Failure{"cuStreamBeginCapture_v2", 1, 999, "cuda: recording 1 launches failed: error 999"},
        Failure{"cuLaunchKernel", 1, 999,
                "cuda: recording kernel 'increment' of block @a, layer 2 failed: error 999"},
        Failure{"cuStreamEndCapture", 1, 999, "cuda: recording 1 launches failed: error 999"},
        Failure{"cuGraphInstantiateWithFlags", 1, 2,
                "cuda: making a graph of 1 launches failed: CUDA_ERROR_OUT_OF_MEMORY"},
        Failure{"cuEventRecord", 1, 999, "cuda: marking the time failed: error 999"},
        Failure{"cuLaunchKernel", 2, 719,
                "cuda: running kernel 'increment' of block @a, layer 2 failed: "
                "CUDA_ERROR_LAUNCH_FAILED"},
        Failure{"cuGraphLaunch", 1, 719,
                "cuda: running 1 launches, kernel 'increment' of block @a, layer 2 to kernel "
                "'increment' of block @a, layer 2 failed: CUDA_ERROR_LAUNCH_FAILED"},
        Failure{"cuEventElapsedTime", 1, 999, "cuda: reading the time failed: error 999"},
        Failure{"cuMemcpyDtoHAsync_v2", 1, 999, "cuda: downloading 256 bytes failed: error 999"}));

TEST(CudaDevice, SaysWhatTheCompilerSays) {
  auto device = opened();
  fake_gpu::options().failing = "cuModuleLoadDataEx";
  fake_gpu::options().result = 218;
  fake_gpu::options().compilerLog = "ptxas application ptx input, line 9; error : what is this\n";
  EXPECT_EQ(toString(device->load(smallModule(increment()))),
            "cuda: loading the kernels for cuda:sm_90 failed: CUDA_ERROR_INVALID_PTX; its compiler "
            "says: ptxas application ptx input, line 9; error : what is this");
}

TEST(CudaDevice, SaysHowMuchMemoryIsThere) {
  fake_gpu::options().memory = size_t(100) << 20;
  auto device = opened();
  auto most = device->allocate(size_t(60) << 20);
  ASSERT_TRUE(bool(most));
  EXPECT_EQ(device->memory(), size_t(40) << 20);
  EXPECT_EQ(messageOf(device->allocate(size_t(50) << 20)),
            "cuda: a buffer needs 50 MiB, Fake 0 has 40 MiB free");
  // Running out of memory is not a fault.
  EXPECT_EQ(messageOf(device->allocate(size_t(30) << 20)), "");
}

TEST(CudaDevice, RefusesBlocksThatAreTooLarge) {
  fake_gpu::options().mostThreads = 32;
  Loaded on;
  EXPECT_EQ(
      messageOf(on.device->record(on.launches)),
      "cuda: kernel 'first' of block @a, layer 0 has blocks of 64 threads; Fake 0 gives it at "
      "most 32");
}

TEST(CudaDevice, NamesTheKernelThatFaults) {
  Loaded on;
  fake_gpu::options().faultingKernel = "second";
  auto sequence = on.device->record(on.launches);
  ASSERT_TRUE(bool(sequence));
  std::string fault = "cuda: running kernel 'second' of block @a, layer 1 failed: "
                      "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
  EXPECT_EQ(messageOf(on.device->run(**sequence)), fault);
  // After a fault, no function of the driver is called.
  size_t calls = fake_gpu::calls().size();
  std::string after = "cuda: Fake 0 runs nothing more after a fault (" + fault + ")";
  EXPECT_EQ(messageOf(on.device->run(**sequence)), after);
  EXPECT_EQ(messageOf(on.device->record(on.launches)), after);
  EXPECT_EQ(messageOf(on.device->allocate(1)), after);
  EXPECT_EQ(toString(on.device->load("")), after);
  EXPECT_EQ(on.upload(), after);
  EXPECT_EQ(on.download(), after);
  EXPECT_EQ(fake_gpu::calls().size(), calls);
}

TEST(CudaDevice, NamesTheSequenceThatFaultsLater) {
  std::string seen[2];
  for (bool checked : {false, true}) {
    Loaded on(checked ? "cuda:checked" : "cuda");
    fake_gpu::options().faultingKernel = "second";
    fake_gpu::options().faultingLaunch = 2;
    auto sequence = on.device->record(on.launches);
    ASSERT_TRUE(bool(sequence));
    EXPECT_EQ(messageOf(on.device->run(**sequence)), "");
    seen[checked] = messageOf(on.device->run(**sequence));
    sequence->reset();
    on.buffer.reset();
    on.device.reset();
    if (!checked)
      fake_gpu::reset();
  }
  EXPECT_EQ(seen[0], "cuda: running 2 launches, kernel 'first' of block @a, layer 0 to kernel "
                     "'second' of block @a, layer 1 (cuda:checked runs them one by one and finds "
                     "which) failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was "
                     "encountered");
  EXPECT_EQ(seen[1], "cuda: running kernel 'second' of block @a, layer 1 failed: "
                     "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
}

} // namespace
