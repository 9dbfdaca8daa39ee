#include "ctxc/Support/Memory.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <unistd.h>

/// Nothing here may ask for memory.
[[noreturn]] static void endWithoutMemory() {
  static constexpr char message[] =
      "ctxc: error: there is not enough memory; free some, or use a smaller model or prompt\n";
  (void)!::write(STDERR_FILENO, message, sizeof message - 1);
  ctxc::removeUnfinished();
  ::_exit(2);
}

static std::terminate_handler previousTerminate;

/// Some libraries (Eigen) call malloc and throw themselves, through code that catches nothing.
[[noreturn]] static void endBecauseOfException() {
  if (std::exception_ptr exception = std::current_exception()) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc &) {
      endWithoutMemory();
    } catch (...) {
    }
  }
  previousTerminate();
  std::abort();
}

void ctxc::installMemoryGuard() {
  previousTerminate = std::set_terminate(endBecauseOfException);
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); });
}

#ifdef __GLIBC__
#include <cstdint>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

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

/// The size of this process's address space, which /proc/self/statm has in pages, first.
static uint64_t ownAddresses() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

std::optional<uint64_t> ctxc::availableMemory() {
  std::optional<uint64_t> bytes = freeOfSystem();
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    uint64_t used = ownAddresses(), left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    bytes = bytes ? std::min(*bytes, left) : left;
  }
  return bytes;
}

std::optional<uint64_t> ctxc::residentMemory() {
  uint64_t all = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> all >> resident))
    return std::nullopt;
  return resident * sysconf(_SC_PAGESIZE);
}
#else
void ctxc::giveBackMemory() {}
std::optional<uint64_t> ctxc::availableMemory() { return std::nullopt; }
std::optional<uint64_t> ctxc::residentMemory() { return std::nullopt; }
#endif
