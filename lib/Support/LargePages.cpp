#include "ctxc/Support/LargePages.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <sys/mman.h>

using namespace ctxc;

namespace {
constexpr uint64_t pageSize = uint64_t(2) << 20;
/// So that a chunk's rest, which a block did not fit in, is a small part of it. Pages that nobody
/// touches take no memory.
constexpr uint64_t leastChunk = 32 * pageSize;
constexpr uint64_t alignment = 64;
} // namespace

LargePages::~LargePages() {
  for (const Chunk &chunk : chunks)
    ::munmap(chunk.base, chunk.size);
}

uint8_t *LargePages::take(uint64_t bytes) {
  if (chunks.empty() || bytes > chunks.back().size - used) {
    // The system aligns a map of this size to large pages.
    uint64_t size = llvm::alignTo(std::max(bytes, leastChunk), pageSize);
    void *base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return nullptr;
    (void)::madvise(base, size, MADV_HUGEPAGE);
    chunks.push_back({static_cast<uint8_t *>(base), size});
    used = 0;
  }
  uint8_t *block = chunks.back().base + used;
  used = std::min(llvm::alignTo(used + bytes, alignment), chunks.back().size);
  return block;
}
