//===- PatchDirectory.h - patches of several positions, one file for each --===//
#ifndef CTXC_EXPORT_PATCHDIRECTORY_H
#define CTXC_EXPORT_PATCHDIRECTORY_H

#include "ctxc/Export/PatchSet.h"

namespace ctxc {

/// Makes the directory `path`, which must not exist, completely or not at all. `make` gets a
/// function that writes a patch to the patch file (PatchFile.h) of the position in its metadata,
/// such as "position-0012.safetensors", with as many digits as `last`, the last position.
llvm::Error writePatchDirectory(llvm::StringRef path, int64_t last,
                                llvm::function_ref<llvm::Error(PatchWriter)> make);

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHDIRECTORY_H
