#include "lib/Runtime/Tune/Pages.h"
#include <cstring>
#include <sys/mman.h>

using namespace ctxc;

Pages::Pages(std::size_t bytes, bool huge, unsigned char value) : memory(nullptr), size(bytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return;
  madvise(mapped, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(mapped, value, bytes); // untouched pages would all be the same page of zeros
  memory = static_cast<char *>(mapped);
}

Pages::~Pages() {
  if (memory)
    munmap(memory, size);
}
