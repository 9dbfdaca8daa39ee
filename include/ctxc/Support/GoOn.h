//===- GoOn.h - continues a run that was interrupted -----------------------===//
//
// Long runs that keep their results in a directory need two guarantees: no other process writes
// there at the same time, and a run that continues has the same settings as the first one.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_GOON_H
#define CTXC_SUPPORT_GOON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// Opens `file`, which is created if it does not exist, to read and append, and locks it for this
/// process. The lock ends with the process in any case. Errors: it is not a regular file, or cannot
/// be opened; another process, which the message names, has locked it.
llvm::Expected<int> openLocked(llvm::StringRef file);

/// Fails if `found`, the settings in `file`, differ from `wanted`, with an error for each member
/// that differs.
llvm::Error compareSettings(llvm::StringRef file, const llvm::json::Object &found,
                            const llvm::json::Object &wanted);

} // namespace ctxc

#endif // CTXC_SUPPORT_GOON_H
