// A libnccl.so.2 or librccl.so.1 for tests: sums over processes that share memory, each with its
// own fake device, and numbers that pass between two of them. The terms are added in the order of
// the ranks. CTXC_FAKE_NCCL names a function that fails, or, after "hang:", one that never returns.
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

/// So many numbers are added at once, of at most so many ranks; so many pass at once.
static constexpr size_t most = 1 << 16, mostRanks = 8, mostPassed = 1 << 12;

/// What one rank has for another.
struct Letter {
  std::atomic<bool> isThere{false};
  float numbers[mostPassed];
};

/// What the ranks of a group share.
struct Shared {
  std::atomic<int> arrived{0}, meeting{0};
  float numbers[mostRanks][most];
  Letter letters[mostRanks][mostRanks]; ///< by who sends it, and to whom
};

namespace ctxc::graphs::nccl {
struct GroupObject {
  Shared *shared;
  int rank, ranks;
};
} // namespace ctxc::graphs::nccl

static bool fails(const char *name) {
  const char *named = std::getenv("CTXC_FAKE_NCCL");
  while (named && named == std::string("hang:") + name)
    pause();
  return named && !std::strcmp(named, name);
}

namespace {

/// Waits for all ranks, step by step.
class Meeting {
public:
  explicit Meeting(Group group) : group(group) {}
  void arrive() {
    isOpen = true;
    number = group->shared->meeting;
    if (++group->shared->arrived == group->ranks) {
      group->shared->arrived = 0;
      ++group->shared->meeting;
    }
  }
  /// Whether all that arrive have.
  bool isOver() {
    isOpen = isOpen && group->shared->meeting == number;
    if (isOpen)
      usleep(20);
    return !isOpen;
  }

private:
  Group group;
  bool isOpen = false;
  int number = 0;
};

/// A sum in the place of its terms.
class Adding {
public:
  Adding(Group group, float *numbers, size_t count)
      : group(group), numbers(numbers), count(count), meeting(group) {}

  bool operator()() {
    while (meeting.isOver()) {
      if (from >= count)
        return true;
      const size_t some = std::min(most, count - from);
      if (!isGiven) {
        std::copy_n(numbers + from, some, group->shared->numbers[group->rank]);
      } else {
        add(some);
        from += some;
      }
      isGiven = !isGiven;
      meeting.arrive();
    }
    return false;
  }

private:
  void add(size_t some) {
    for (size_t i = 0; i < some; ++i) {
      float sum = group->shared->numbers[0][i];
      for (int rank = 1; rank < group->ranks; ++rank)
        sum += group->shared->numbers[rank][i];
      numbers[from + i] = sum;
    }
  }

  Group group;
  float *numbers;
  size_t count, from = 0;
  bool isGiven = false; ///< this rank's next terms
  Meeting meeting;
};

/// Numbers on their way from one rank to another.
struct Passing {
  Letter *letter;
  float *numbers;
  size_t count;
  bool isSent;

  /// Passes what can be passed now; whether that is all.
  bool step() {
    while (count && letter->isThere != isSent) {
      const size_t some = std::min(mostPassed, count);
      if (isSent)
        std::copy_n(numbers, some, letter->numbers);
      else
        std::copy_n(letter->numbers, some, numbers);
      letter->isThere = isSent;
      numbers += some;
      count -= some;
    }
    return count == 0;
  }
};

} // namespace

/// What the group that is open has been given.
static std::vector<Passing> passing;
static Stream passingStream = nullptr;
static bool isGrouping = false;

static int pass(float *numbers, size_t count, int type, Letter &letter, Stream stream,
                bool isSent) {
  if (!isGrouping || type != 7 || outsideCapture(stream) ||
      !isDevice(reinterpret_cast<uint64_t>(numbers), count * sizeof(float)))
    return 4;
  passing.push_back({&letter, numbers, count, isSent});
  passingStream = stream;
  return 0;
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
  Meeting meeting(*group);
  meeting.arrive();
  while (!meeting.isOver())
    ;
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
  stream->work.push_back(Adding(group, static_cast<float *>(to), count));
  return 0;
}
int ncclGroupStart() {
  isGrouping = true;
  return 0;
}
int ncclSend(const void *from, size_t count, int type, int peer, Group group, Stream stream) {
  auto *numbers = const_cast<float *>(static_cast<const float *>(from));
  return pass(numbers, count, type, group->shared->letters[group->rank][peer], stream, true);
}
int ncclRecv(void *to, size_t count, int type, int peer, Group group, Stream stream) {
  return pass(static_cast<float *>(to), count, type, group->shared->letters[peer][group->rank],
              stream, false);
}
int ncclGroupEnd() {
  isGrouping = false;
  if (fails("ncclGroupEnd"))
    return 1;
  if (!passing.empty())
    passingStream->work.push_back([all = std::move(passing)]() mutable {
      bool isDone = true;
      for (Passing &each : all)
        isDone &= each.step();
      return isDone;
    });
  passing.clear();
  return 0;
}
const char *ncclGetErrorString(int result) {
  return result == 1 ? "unhandled cuda error" : "bad call";
}

} // extern "C"
