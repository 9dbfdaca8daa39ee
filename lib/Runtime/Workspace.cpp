#include "lib/Runtime/Workspace.h"
#include "llvm/Support/MathExtras.h"
#include <sys/mman.h>

void *ctxc::Workspace::take(int64_t bytes) {
  if (memory && bytes <= size)
    return memory.get();
  constexpr int64_t largePage = int64_t(2) << 20;
  int64_t alignment = bytes < largePage ? 64 : largePage;
  size = llvm::alignTo(bytes, alignment);
  memory.reset();
  memory.reset(std::aligned_alloc(alignment, size));
  if (!memory)
    return nullptr;
  if (alignment == largePage)
    (void)::madvise(memory.get(), size, MADV_HUGEPAGE);
  return memory.get();
}
