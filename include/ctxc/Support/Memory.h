//===- Memory.h - memory given back, to be had, and not to be had -----------------------===//
#ifndef CTXC_SUPPORT_MEMORY_H
#define CTXC_SUPPORT_MEMORY_H

#include <cstdint>
#include <optional>

namespace ctxc {

/// Call this after work that will hardly be done again, such as a compilation or parsing a large
/// file. Freed memory is returned to the system, and so are the pages of large shared libraries, of
/// which LLVM's and MLIR's are a hundred megabytes; the system reads them from the file again when
/// they are needed. Where the system offers neither, nothing is done.
void giveBackMemory();

/// How many bytes can still be had, by the system's word and this process's limits; none where
/// neither is known.
std::optional<uint64_t> availableMemory();

/// How many bytes of memory this process uses now, pages of mapped files included; none where the
/// system does not say.
std::optional<uint64_t> residentMemory();

/// Has this process say `ctxc: error: …`, remove the temporary files of unfinished outputs, and
/// exit with code 2 where memory cannot be had, by new or by LLVM's own containers, and not abort.
/// For main().
void installMemoryGuard();

} // namespace ctxc

#endif // CTXC_SUPPORT_MEMORY_H
