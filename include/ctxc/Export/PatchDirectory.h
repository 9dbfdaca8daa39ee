//===- PatchDirectory.h - the patches of several positions, a file each ----===//
#ifndef CTXC_EXPORT_PATCHDIRECTORY_H
#define CTXC_EXPORT_PATCHDIRECTORY_H

#include "ctxc/Export/PatchFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc {

/// Writes one patch to its file.
using PatchWriter = llvm::function_ref<llvm::Error(const Patch &, const PatchMetadata &)>;

/// Makes the directory `path`, which must not exist, wholly or not at all. `make` is given what
/// writes the patch of the position that the metadata names, as a patch file by itself
/// (PatchFile.h): "position-0012.safetensors", of as many digits as `last`, the last position, has.
llvm::Error writePatchDirectory(llvm::StringRef path, int64_t last,
                                llvm::function_ref<llvm::Error(PatchWriter)> make);

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHDIRECTORY_H
