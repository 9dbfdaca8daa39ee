#include "lib/Runtime/CompiledRun.h"
#include "ctxc/Lowering/AttentionTiles.h"
#include "ctxc/Support/Error.h"
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace ctxc;

/// The first slot that is kept where tokens after the first `count` see those of a window.
static int64_t firstKept(int64_t count, int64_t window) {
  return std::max<int64_t>(count - window, 0) / slotsOfTile * slotsOfTile;
}

int64_t ctxc::roomOfWindow(std::optional<int64_t> window, int64_t rows, int64_t capacity) {
  // A single token moves the window's slots once in a tile of tokens.
  return window ? std::min(capacity, *window + slotsOfTile - 1 + std::max(rows, slotsOfTile))
                : capacity;
}

static constexpr size_t largePage = size_t(2) << 20;
static std::align_val_t alignmentOf(size_t bytes) {
  return std::align_val_t(bytes < 2 * largePage ? 64 : largePage);
}

void *ctxc::allocateCache(size_t bytes) {
  void *memory = ::operator new(bytes, alignmentOf(bytes));
  if (bytes >= 2 * largePage) // whole pages only: the rest of one would be memory for nothing
    (void)::madvise(memory, bytes / largePage * largePage, MADV_HUGEPAGE);
  return memory;
}

void ctxc::freeCache(void *memory, size_t bytes) { ::operator delete(memory, alignmentOf(bytes)); }

void SlotMemory::take(const SlotMemory &other, int64_t from, int64_t count) {
  if (count == 0) // either may have no memory
    return;
  for (int64_t group = 0; group < groups; ++group)
    std::memmove(bytes.data() + group * room() * bytesOfGroup(),
                 other.bytes.data() + (group * other.room() + from) * bytesOfGroup(),
                 count * bytesOfGroup());
}

void StepState::makeRoom(int64_t count, int64_t rows, int64_t capacity) {
  if (count == 0)
    first = 0;
  if (count + rows - first <= room)
    return;
  if (int64_t from = window ? firstKept(count, *window) : 0; from > first) {
    for (SlotMemory &each : memories)
      each.take(each, from - first, count - from);
    first = from;
  }
  room = std::max(room, roomOfWindow(window, rows, capacity - first));
}

char *StepState::memory(size_t index, size_t bytesOfSlot, int64_t groups) {
  if (memories.size() <= index)
    memories.resize(index + 1);
  SlotMemory &at = memories[index];
  at.bytesOfSlot = bytesOfSlot;
  at.groups = groups;
  if (at.room() < room) {
    SlotMemory larger{bytesOfSlot, groups, {}};
    larger.bytes.resize(room * bytesOfSlot);
    larger.take(at, 0, at.room());
    at = std::move(larger);
  }
  return at.bytes.data();
}

size_t StepState::carriedFrom(int64_t count) {
  isRecurrent = true;
  for (auto [i, each] : llvm::enumerate(carried))
    if (each.count == count)
      return i;
  assert(count == 0 && "the run goes on from where its recurrences carry nothing");
  carried.push_back({});
  return carried.size() - 1;
}

std::pair<size_t, size_t> StepState::carry(int64_t count, int64_t rows, int64_t held) {
  if (count == 0 && !carried.empty() && !llvm::any_of(carried, [](const CarriedState &each) {
        return each.count == 0;
      })) { // a run that begins again: the zeros take the place of what it had
    carried.resize(1);
    carried.front().count = 0;
    for (std::vector<float> &memory : carried.front().memories)
      llvm::fill(memory, 0);
  }
  const size_t from = carriedFrom(count);
  size_t to = carried.size();
  // In place of what nobody goes back to; within a call also of what it goes on from.
  for (auto [i, each] : llvm::enumerate(carried))
    if (i != from && (each.count > count || each.count != held))
      to = i;
  if (to == carried.size() && count != held)
    to = from;
  if (to == carried.size())
    carried.push_back({});
  carried[to].count = count + rows;
  return {from, to};
}

float *StepState::memoryOf(size_t place, size_t index, size_t numbers) {
  std::vector<std::vector<float>> &memories = carried[place].memories;
  if (memories.size() <= index)
    memories.resize(index + 1);
  memories[index].resize(numbers);
  return memories[index].data();
}

StepState StepState::copy(int64_t count, int64_t capacity) const {
  StepState made;
  made.first = std::min(first, count);
  made.window = window;
  made.room = std::max(roomOfWindow(window, 1, capacity - made.first), count - made.first);
  for (const SlotMemory &each : memories) {
    SlotMemory &copy = made.memories.emplace_back();
    copy.bytesOfSlot = each.bytesOfSlot;
    copy.groups = each.groups;
    copy.bytes.resize(made.room * each.bytesOfSlot);
    copy.take(each, 0, count - made.first);
  }
  made.isRecurrent = isRecurrent;
  for (const CarriedState &each : carried)
    if (each.count == count)
      made.carried.push_back(each);
  return made;
}

llvm::Error CompiledRun::checkSeen() const {
  for (const StepState &step : steps)
    if (count > 0 && !step.suffices(count))
      return makeError("the run was truncated to " + llvm::Twine(count) +
                       " tokens, and a layer with a window of " + llvm::Twine(*step.window) +
                       " tokens keeps those from " + llvm::Twine(step.first) +
                       " on; start a run that keeps all, or truncate it to no more than its last "
                       "call");
  return llvm::Error::success();
}

void CompiledRun::remember(int64_t before, llvm::ArrayRef<Input> tokens, bool withPatch) {
  given.erase(given.begin() + std::min<size_t>(before, given.size()), given.end());
  plain = std::min(plain, before);
  if (plain == before && !withPatch)
    plain += tokens.size();
  given.insert(given.end(), tokens.begin(), tokens.end());
}

int64_t CompiledRun::carriedUpTo() const {
  int64_t most = count;
  for (bool found = false; !found;) {
    found = true;
    for (const StepState &step : steps)
      if (!step.carries(most)) {
        int64_t before = 0;
        for (const CarriedState &each : step.carried)
          if (each.count < most)
            before = std::max(before, each.count);
        most = before;
        found = false;
      }
  }
  return most;
}

RunRestorer::RunRestorer(CompiledRun &run, bool inChunks) : run(run), count(run.count) {
  run.begin();
  if (!inChunks || count == 0)
    return;
  for (const StepState &step : run.steps)
    saved.push_back(step.window ? step.copy(count, count) : StepState());
}

RunRestorer::~RunRestorer() {
  if (isReleased)
    return;
  run.count = count;
  for (size_t i = 0; i < saved.size(); ++i)
    if (saved[i].window && !run.steps[i].suffices(count))
      run.steps[i] = std::move(saved[i]);
}
