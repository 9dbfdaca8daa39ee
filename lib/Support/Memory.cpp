#include "ctxc/Support/Memory.h"

#include <cstddef>

#ifdef __GLIBC__
#include <cstdint>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/// Whether pages equal the file's: those that cannot be written to.
static int giveBackPages(dl_phdr_info *object, size_t, void *) {
  constexpr size_t large = 8 << 20;
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) || segment.p_memsz < large)
      continue;
    uintptr_t begin = object->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

void ctxc::giveBackMemory() {
  malloc_trim(0);
  dl_iterate_phdr(giveBackPages, nullptr);
}
#else
void ctxc::giveBackMemory() {}
#endif
