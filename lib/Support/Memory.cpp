#include "ctxc/Support/Memory.h"

#include <cstddef>
#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <cstdint>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/// /proc/meminfo has lines "MemAvailable:    1234 kB".
static std::optional<uint64_t> freeOfSystem() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  uint64_t kilobytes;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:")
      return kilobytes * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

std::optional<uint64_t> ctxc::availableMemory() {
  std::optional<uint64_t> bytes = freeOfSystem();
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      (!bytes || limit.rlim_cur < *bytes))
    bytes = limit.rlim_cur;
  return bytes;
}
#else
void ctxc::giveBackMemory() {}
std::optional<uint64_t> ctxc::availableMemory() { return std::nullopt; }
#endif
