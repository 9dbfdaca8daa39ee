//===- Memory.h - memory given back to the system, and to be had ------------------------===//
#ifndef CTXC_SUPPORT_MEMORY_H
#define CTXC_SUPPORT_MEMORY_H

#include <cstdint>
#include <optional>

namespace ctxc {

/// To be called after work that will hardly be done again: a compilation, a large file parsed.
/// What was freed goes back to the system, and so do the pages of large shared libraries, of which
/// LLVM's and MLIR's are a hundred megabytes. Whoever needs one of these again finds it in the
/// file. Where the system offers neither, nothing is done.
void giveBackMemory();

/// How many bytes can still be had, by the system's word and this process's limits; none where
/// neither is known.
std::optional<uint64_t> availableMemory();

} // namespace ctxc

#endif // CTXC_SUPPORT_MEMORY_H
