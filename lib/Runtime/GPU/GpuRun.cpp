#include "lib/Runtime/GPU/GpuRun.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::Error;

Slots &GpuRun::slotsOf(int64_t window) {
  window = keptOf(window);
  Slots &found = slots[window];
  if (!found.room)
    found.room = window ? std::min(room, window + kSlotsTogether + movedTogether) : room;
  return found;
}

Error GpuRun::checkSeen() const {
  for (const auto &[window, held] : slots)
    if (count > 0 && held.first > 0 && held.first > count - window + 1)
      return makeError("the run was truncated to " + llvm::Twine(count) +
                       " tokens, and a layer with a window of " + llvm::Twine(window) +
                       " tokens keeps those from " + llvm::Twine(held.first) +
                       " on; start a run that keeps all, or truncate it to no more than its last "
                       "call");
  return Error::success();
}

void GpuRun::begin() {
  held = count;
  for (auto &[window, each] : slots)
    each.saved.clear();
}

/// Calls `body` with each buffer of state that has these slots, and the bytes of a slot.
Error GpuRun::forStates(int64_t window, llvm::function_ref<Error(Device::Buffer &, size_t)> body) {
  for (auto [step, ofStep] : llvm::enumerate(states))
    for (auto &[place, buffer] : ofStep)
      if (keptOf(windows[step]) == window)
        if (Error error = body(*buffer, buffer->bytes / slots[window].room))
          return error;
  return Error::success();
}

Error GpuRun::makeRoom(int64_t window, int64_t rows) {
  Slots &own = slotsOf(window);
  window = keptOf(window);
  if (count == 0) {
    own.isHidden = own.isHidden || own.first > 0;
    own.first = 0;
    return Error::success();
  }
  const int64_t first = (count - window) / kSlotsTogether * kSlotsTogether;
  if (!window || count + rows - own.first <= own.room || first <= own.first)
    return Error::success();
  const bool mayBeUndone = held > 0 && count > held && own.saved.empty();
  Error error = forStates(window, [&](Device::Buffer &buffer, size_t each) -> Error {
    std::vector<char> bytes(each * (count - own.first));
    if (Error error = device->download(bytes, buffer, 0))
      return error;
    if (Error error =
            device->upload(buffer, 0, llvm::ArrayRef(bytes).drop_front(each * (first - own.first))))
      return error;
    if (mayBeUndone) {
      bytes.resize(each * (held - own.first));
      own.saved.push_back(std::move(bytes));
    }
    return Error::success();
  });
  if (error)
    return error;
  if (mayBeUndone)
    own.savedFirst = own.first;
  own.first = first;
  own.isHidden = true;
  return Error::success();
}

Error GpuRun::undo() {
  count = held;
  for (auto &each : slots) {
    const int64_t window = each.first;
    Slots &own = each.second;
    if (own.saved.empty())
      continue;
    size_t next = 0;
    if (Error error = forStates(window, [&](Device::Buffer &buffer, size_t) {
          return device->upload(buffer, 0, own.saved[next++]);
        }))
      return error;
    own.saved.clear();
    own.first = own.savedFirst;
    own.isHidden = true;
  }
  return Error::success();
}
