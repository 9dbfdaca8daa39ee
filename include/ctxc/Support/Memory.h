//===- Memory.h - released, available and exhausted memory ----------------===//
#ifndef CTXC_SUPPORT_MEMORY_H
#define CTXC_SUPPORT_MEMORY_H

#include <cstdint>
#include <optional>

namespace ctxc {

/// Call this after work that will hardly be repeated, such as a compilation or parsing a large
/// file. It returns freed memory to the system, and also the pages of large shared libraries, of
/// which LLVM's and MLIR's take a hundred megabytes; the system reads them from the file again when
/// they are needed. If the system offers neither, it does nothing.
void giveBackMemory();

/// How many bytes can still be allocated, according to the system and this process's limits; none
/// if neither is known.
std::optional<uint64_t> availableMemory();

/// How many bytes of memory this process uses now, including pages of mapped files; none if the
/// system does not say.
std::optional<uint64_t> residentMemory();

/// If an allocation fails, by new or in LLVM's own containers, the process then prints `ctxc:
/// error: …`, removes the temporary files of unfinished outputs, and exits with code 2 instead of
/// aborting. For main().
void installMemoryGuard();

} // namespace ctxc

#endif // CTXC_SUPPORT_MEMORY_H
