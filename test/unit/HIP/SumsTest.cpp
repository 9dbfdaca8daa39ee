// Sums over AMD's devices by RCCL, on a fake of it and of HIP's driver: two processes with a device
// each. The code is that for NVIDIA's NCCL, which test/shard/gpu.py runs with a model; here it
// finds the other library.
#include "lib/Runtime/GPU/DeviceSums.h"
#include "test/fake-gpu/FakeGpu.h"
#include "test/unit/GPU/Device.h"
#include <sys/wait.h>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::test;
using llvm::toString;

namespace {

/// There are no ranks besides the two.
class NoOthers : public Neighbours {
public:
  llvm::Error receive(llvm::ArrayRef<StreamRows *>) override { llvm_unreachable("no stages"); }
  llvm::Error send(llvm::ArrayRef<const StreamRows *>) override { llvm_unreachable("no stages"); }
  llvm::Error makeWhole(llvm::ArrayRef<SharedRows>) override { llvm_unreachable("no hosts"); }
};

/// A sum and numbers that pass, as rank `rank` of two sees them; or what failed.
std::string sumsOf(int rank, llvm::function_ref<std::vector<char>(std::vector<char>)> share) {
  auto device = Device::open("rocm");
  if (!device)
    return toString(device.takeError());
  auto sums = (*device)->openSums();
  if (!sums)
    return toString(sums.takeError());
  std::vector<char> id((*sums)->idBytes());
  if (rank == 0) {
    auto made = (*sums)->makeId();
    if (!made)
      return toString(made.takeError());
    id = *made;
  }
  NoOthers others;
  if (auto error = (*sums)->join(share(id), rank, 2, others))
    return toString(std::move(error));
  constexpr size_t count = 3, bytes = count * sizeof(float);
  std::vector<float> numbers = {1.5f + rank, 10.0f * rank, 7};
  auto buffer = (*device)->allocate(bytes), other = (*device)->allocate(bytes);
  for (auto *each : {&buffer, &other})
    if (!*each)
      return toString(each->takeError());
  llvm::ArrayRef<char> raw(reinterpret_cast<const char *>(numbers.data()), bytes);
  if (auto error = (*device)->upload(**buffer, 0, raw))
    return toString(std::move(error));
  const DeviceSums::Passed sent{1 - rank, buffer->get(), 0, count};
  const DeviceSums::Passed received{1 - rank, other->get(), 0, count};
  if (auto error = (*sums)->pass(sent, received))
    return toString(std::move(error));
  if (auto error = (*sums)->sum(**buffer, count))
    return toString(std::move(error));
  if (auto error = (*device)->finish())
    return toString(std::move(error));
  std::string text;
  for (auto *each : {&buffer, &other}) {
    std::vector<float> got(count);
    if (auto error = (*device)->download({reinterpret_cast<char *>(got.data()), bytes}, ***each, 0))
      return toString(std::move(error));
    for (float number : got)
      text += std::to_string(number).substr(0, 4) + " ";
  }
  return text;
}

TEST(HipSums, AddUpNumbersOfTwoProcesses) {
  fake_gpu::options().devices = {0x942};
  int toChild[2], fromChild[2];
  ASSERT_EQ(pipe(toChild), 0);
  ASSERT_EQ(pipe(fromChild), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string found = sumsOf(1, [&](std::vector<char> id) {
      const ssize_t got = read(toChild[0], id.data(), id.size());
      return got == ssize_t(id.size()) ? id : std::vector<char>();
    });
    (void)!write(fromChild[1], found.data(), found.size());
    _exit(0);
  }
  EXPECT_EQ(sumsOf(0,
                   [&](std::vector<char> id) {
                     EXPECT_EQ(write(toChild[1], id.data(), id.size()), ssize_t(id.size()));
                     return id;
                   }),
            "4.00 10.0 14.0 2.50 10.0 7.00 ");
  char found[256] = {};
  EXPECT_GT(read(fromChild[0], found, sizeof found - 1), 0);
  EXPECT_STREQ(found, "4.00 10.0 14.0 1.50 0.00 7.00 ");
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

} // namespace
