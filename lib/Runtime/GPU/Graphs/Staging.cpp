#include "lib/Runtime/GPU/Graphs/Staging.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace ctxc::graphs;

static constexpr size_t line = 64;

Result Staging::open(const Api &api) {
  for (Half &half : halves) {
    void *memory = nullptr;
    if (Result result = api.MemAllocHost(&memory, kHalfBytes, 0))
      return result;
    half.memory = static_cast<char *>(memory);
    if (Result result = api.EventCreate(&half.read, 0))
      return result;
  }
  return 0;
}

void Staging::close(const Api &api) {
  for (Half &half : halves) {
    if (half.read)
      api.EventDestroy(half.read);
    if (half.memory)
      api.MemFreeHost(half.memory);
    half = Half();
  }
}

Result Staging::turn(const Api &api, Stream stream) {
  if (Result result = api.EventRecord(halves[current].read, stream))
    return result;
  current = !current;
  // An event that was never recorded counts as done.
  if (Result result = api.EventSynchronize(halves[current].read))
    return result;
  halves[current].used = 0;
  return 0;
}

Result Staging::read(const Api &api, llvm::ArrayRef<Read> reads, Stream stream) {
  // After that, everything uploaded through the halves is on the device.
  if (Result result = api.StreamSynchronize(stream))
    return result;
  struct Part {
    const char *from;
    llvm::MutableArrayRef<char> to;
  };
  std::vector<Part> parts[2]; // of each half: what it holds or will hold, and where that goes
  for (Half &half : halves)
    half.used = 0;
  auto finish = [&](int which) -> Result {
    if (parts[which].empty())
      return 0;
    if (Result result = api.EventSynchronize(halves[which].read))
      return result;
    for (const Part &part : parts[which])
      memcpy(part.to.data(), part.from, part.to.size());
    parts[which].clear();
    halves[which].used = 0;
    return 0;
  };
  for (auto [from, to] : reads)
    while (!to.empty()) {
      if (halves[current].used == kHalfBytes) {
        if (Result result = api.EventRecord(halves[current].read, stream))
          return result;
        current = !current;
        if (Result result = finish(current))
          return result;
      }
      Half &half = halves[current];
      size_t piece = std::min(to.size(), kHalfBytes - half.used);
      if (Result result = api.MemcpyDtoHAsync(half.memory + half.used, from, piece, stream))
        return result;
      parts[current].push_back({half.memory + half.used, to.take_front(piece)});
      half.used = std::min(llvm::alignTo(half.used + piece, line), kHalfBytes);
      from += piece;
      to = to.drop_front(piece);
    }
  if (Result result = api.EventRecord(halves[current].read, stream))
    return result;
  if (Result result = finish(!current))
    return result;
  return finish(current);
}

Result Staging::copy(const Api &api, Pointer to, llvm::ArrayRef<char> from, Stream stream) {
  while (!from.empty()) {
    if (halves[current].used == kHalfBytes)
      if (Result result = turn(api, stream))
        return result;
    Half &half = halves[current];
    size_t piece = std::min(from.size(), kHalfBytes - half.used);
    memcpy(half.memory + half.used, from.data(), piece);
    if (Result result = api.MemcpyHtoDAsync(to, half.memory + half.used, piece, stream))
      return result;
    half.used = std::min(llvm::alignTo(half.used + piece, line), kHalfBytes);
    to += piece;
    from = from.drop_front(piece);
  }
  return 0;
}
