//===- PatchMetadata.h - PatchMetadata as a safetensors file's strings ----===//
#ifndef CTXC_LIB_EXPORT_PATCHMETADATA_H
#define CTXC_LIB_EXPORT_PATCHMETADATA_H

#include "ctxc/Export/PatchFile.h"
#include <map>

namespace ctxc {

/// "3,5,8", and back: non-negative integers; false where it is not such a text.
std::string listText(llvm::ArrayRef<int64_t> values);
bool parseList(llvm::StringRef text, std::vector<int64_t> &values);

/// As `rounding` is written, always in as many characters.
std::string roundingText(double rounding);

std::map<std::string, std::string> metadataStrings(const PatchMetadata &metadata);

/// Whether the file is one of several patches (PatchSet.h).
bool isOfSeveral(const std::map<std::string, std::string> &strings);

/// Parses and checks all keys; keys that this version does not know are
/// ignored. Every problem is passed to `report`.
PatchMetadata parsePatchMetadata(const std::map<std::string, std::string> &strings,
                                 llvm::function_ref<void(const llvm::Twine &)> report);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PATCHMETADATA_H
