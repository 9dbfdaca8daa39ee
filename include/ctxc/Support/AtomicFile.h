//===- AtomicFile.h - write a file completely or not at all ---------------===//
#ifndef CTXC_SUPPORT_ATOMICFILE_H
#define CTXC_SUPPORT_ATOMICFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// Writes `path` through `write`: into a temporary file beside it, flushed,
/// checked, then renamed over `path`. On any failure, of `write` or of the
/// system, `path` is as it was and no temporary file remains. A `path` that is a
/// device or a pipe is never replaced: all of the content is written into it.
llvm::Error writeFileAtomically(llvm::StringRef path,
                                llvm::function_ref<llvm::Error(llvm::raw_pwrite_stream &)> write);

} // namespace ctxc

#endif // CTXC_SUPPORT_ATOMICFILE_H
