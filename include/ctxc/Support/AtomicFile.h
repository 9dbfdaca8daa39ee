//===- AtomicFile.h - write a file completely or not at all ---------------===//
#ifndef CTXC_SUPPORT_ATOMICFILE_H
#define CTXC_SUPPORT_ATOMICFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace ctxc {

/// Writes `path` through `write`: into a temporary file beside it, flushed,
/// checked, then renamed over `path`. On any failure, of `write` or of the
/// system, `path` is as it was and no temporary file remains. A `path` that is a device or a pipe
/// is never replaced: the whole content is written into it. The same holds for a standard stream
/// that is named by its path in /dev, wherever it leads.
llvm::Error writeFileAtomically(llvm::StringRef path,
                                llvm::function_ref<llvm::Error(llvm::raw_pwrite_stream &)> write);

/// Whether `path` is written into instead of being replaced.
bool isWrittenInto(llvm::StringRef path);

/// Says whether the complete file may now become `path`.
using OutputCheck = std::function<llvm::Error(llvm::StringRef path)>;

/// For a program: from now on, a file that writeFileAtomically has written becomes `path` only if
/// `check` does not fail. Returns the previous check; an empty one allows everything, as in a
/// library.
OutputCheck setOutputCheck(OutputCheck check);

/// Fails if that check refuses `path`; a program that writes several files calls it before the
/// first.
llvm::Error checkOutput(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_SUPPORT_ATOMICFILE_H
