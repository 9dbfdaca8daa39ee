//===- StoredPatch.h - one of a file's patches: --position ----------------===//
#ifndef CTXC_TOOLS_CTXC_STOREDPATCH_H
#define CTXC_TOOLS_CTXC_STOREDPATCH_H

#include "ctxc/Export/PatchSet.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// --position.
OptionSpec positionOption();

/// The value of --position; none where it is not given.
llvm::Expected<std::optional<int64_t>> givenPosition(const Arguments &arguments);

/// The patch that the file `path` has, or that of --position; an error where it has several and
/// none is named.
llvm::Expected<std::pair<Patch, PatchMetadata>> readStoredPatch(const Arguments &arguments,
                                                                llvm::StringRef path);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_STOREDPATCH_H
