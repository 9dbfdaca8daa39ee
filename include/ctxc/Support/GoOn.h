//===- GoOn.h - a run that goes on where another was ended -----------------===//
//
// What long runs need that keep their results in a directory: nobody else writes there at the same
// time, and a run that goes on asks for what the first one asked for.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_GOON_H
#define CTXC_SUPPORT_GOON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// Opens `file`, which is made where it is not there, to read and append, for this process alone.
/// The lock ends with the process, however that ends. Errors: it is no regular file, or cannot be
/// opened; another process has locked it, which the message names.
llvm::Expected<int> openLocked(llvm::StringRef file);

/// Fails where the two differ, with an error for each member that does. `file` has `found`.
llvm::Error compareSettings(llvm::StringRef file, const llvm::json::Object &found,
                            const llvm::json::Object &wanted);

} // namespace ctxc

#endif // CTXC_SUPPORT_GOON_H
