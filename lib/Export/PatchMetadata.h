//===- PatchMetadata.h - PatchMetadata as a safetensors file's strings ----===//
#ifndef CTXC_LIB_EXPORT_PATCHMETADATA_H
#define CTXC_LIB_EXPORT_PATCHMETADATA_H

#include "ctxc/Export/PatchFile.h"
#include <map>

namespace ctxc {

std::map<std::string, std::string> metadataStrings(const PatchMetadata &metadata);

/// Parses and checks all keys; keys that this version does not know are
/// ignored. Every problem is passed to `report`.
PatchMetadata parsePatchMetadata(const std::map<std::string, std::string> &strings,
                                 llvm::function_ref<void(const llvm::Twine &)> report);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PATCHMETADATA_H
