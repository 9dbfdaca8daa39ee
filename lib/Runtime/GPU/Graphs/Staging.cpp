#include "lib/Runtime/GPU/Graphs/Staging.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace ctxc::graphs;

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
  // An event that was never recorded is done.
  if (Result result = api.EventSynchronize(halves[current].read))
    return result;
  halves[current].used = 0;
  return 0;
}

Result Staging::copy(const Api &api, Pointer to, llvm::ArrayRef<char> from, Stream stream) {
  constexpr size_t line = 64;
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
