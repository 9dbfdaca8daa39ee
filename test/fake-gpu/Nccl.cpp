// A libnccl.so.2 for tests: sums over processes that share memory, each with its own fake device.
// The terms are added in the order of the ranks. CTXC_FAKE_NCCL names a function that fails.
#include "State.h"
#include "lib/Runtime/GPU/Graphs/NcclApi.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace fake_gpu;
using ctxc::graphs::nccl::Group;
using ctxc::graphs::nccl::Id;

/// So many numbers are added at once, of at most so many ranks.
static constexpr size_t most = 1 << 16, mostRanks = 8;

/// What the ranks of a group share.
struct Shared {
  std::atomic<int> arrived{0}, meeting{0};
  float numbers[mostRanks][most];
};

namespace ctxc::graphs::nccl {
struct GroupObject {
  Shared *shared;
  int rank, ranks;
};
} // namespace ctxc::graphs::nccl

static bool fails(const char *name) {
  const char *named = std::getenv("CTXC_FAKE_NCCL");
  return named && !std::strcmp(named, name);
}

/// Waits for all ranks.
static void meet(Group group) {
  Shared &shared = *group->shared;
  const int meeting = shared.meeting;
  if (++shared.arrived == group->ranks) {
    shared.arrived = 0;
    ++shared.meeting;
  }
  while (shared.meeting == meeting)
    usleep(20);
}

static void add(Group group, float *numbers, size_t count) {
  for (size_t from = 0; from < count; from += most) {
    const size_t some = std::min(most, count - from);
    std::copy_n(numbers + from, some, group->shared->numbers[group->rank]);
    meet(group);
    for (size_t i = 0; i < some; ++i) {
      float sum = group->shared->numbers[0][i];
      for (int rank = 1; rank < group->ranks; ++rank)
        sum += group->shared->numbers[rank][i];
      numbers[from + i] = sum;
    }
    meet(group);
  }
}

extern "C" {

int ncclGetUniqueId(Id *id) {
  if (fails("ncclGetUniqueId"))
    return 2;
  std::string path = "/dev/shm/ctxc-fake-nccl-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0 || ftruncate(file, sizeof(Shared)))
    return 2;
  close(file);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, path.data(), path.size());
  return 0;
}
int ncclCommInitRank(Group *group, int ranks, Id id, int rank) {
  if (fails("ncclCommInitRank") || ranks > int(mostRanks) || !current)
    return 5;
  const int file = open(id.bytes, O_RDWR);
  if (file < 0)
    return 2;
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return 2;
  *group = new ctxc::graphs::nccl::GroupObject{static_cast<Shared *>(memory), rank, ranks};
  meet(*group);
  if (rank == 0)
    unlink(id.bytes);
  return 0;
}
int ncclCommDestroy(Group group) {
  munmap(group->shared, sizeof(Shared));
  delete group;
  return 0;
}
int ncclCommAbort(Group group) { return ncclCommDestroy(group); }
int ncclCommGetAsyncError(Group, int *result) {
  *result = 0;
  return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, Group group,
                  Stream stream) {
  if (fails("ncclAllReduce"))
    return 1;
  if (from != to || type != 7 || operation != 0 || outsideCapture(stream) ||
      !isDevice(reinterpret_cast<uint64_t>(to), count * sizeof(float)))
    return 4;
  stream->work.push_back([=] { add(group, static_cast<float *>(to), count); });
  return 0;
}
const char *ncclGetErrorString(int result) {
  return result == 1 ? "unhandled cuda error" : "bad call";
}

} // extern "C"
