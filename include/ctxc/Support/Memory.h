//===- Memory.h - giving memory back to the system ------------------------===//
#ifndef CTXC_SUPPORT_MEMORY_H
#define CTXC_SUPPORT_MEMORY_H

namespace ctxc {

/// Call this after work that will hardly be done again, such as a compilation or parsing a large
/// file. Freed memory is returned to the system, and so are the pages of large shared libraries, of
/// which LLVM's and MLIR's are a hundred megabytes; the system reads them from the file again when
/// they are needed. Where the system offers neither, nothing is done.
void giveBackMemory();

} // namespace ctxc

#endif // CTXC_SUPPORT_MEMORY_H
