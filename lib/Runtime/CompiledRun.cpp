#include "lib/Runtime/CompiledRun.h"
#include "ctxc/Lowering/AttentionTiles.h"
#include "ctxc/Support/Error.h"
#include <cstring>

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

void StepState::makeRoom(int64_t count, int64_t rows, int64_t capacity) {
  if (count == 0)
    first = 0;
  if (count + rows - first <= room)
    return;
  if (int64_t from = window ? firstKept(count, *window) : 0; from > first) {
    for (SlotMemory &each : memories)
      std::memmove(each.bytes.data(), each.bytes.data() + (from - first) * each.bytesOfSlot,
                   (count - from) * each.bytesOfSlot);
    first = from;
  }
  room = std::max(room, roomOfWindow(window, rows, capacity - first));
}

char *StepState::memory(size_t index, size_t bytesOfSlot) {
  if (memories.size() <= index)
    memories.resize(index + 1);
  SlotMemory &at = memories[index];
  at.bytesOfSlot = bytesOfSlot;
  if (at.bytes.size() < room * bytesOfSlot)
    at.bytes.resize(room * bytesOfSlot);
  return at.bytes.data();
}

StepState StepState::copy(int64_t count, int64_t capacity) const {
  StepState made;
  made.first = std::min(first, count);
  made.window = window;
  made.room = std::max(roomOfWindow(window, 1, capacity - made.first), count - made.first);
  for (const SlotMemory &each : memories) {
    SlotMemory &copy = made.memories.emplace_back();
    copy.bytesOfSlot = each.bytesOfSlot;
    copy.bytes.resize(made.room * each.bytesOfSlot);
    std::memcpy(copy.bytes.data(), each.bytes.data(), (count - made.first) * each.bytesOfSlot);
  }
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

RunRestorer::RunRestorer(CompiledRun &run, bool inChunks) : run(run), count(run.count) {
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
