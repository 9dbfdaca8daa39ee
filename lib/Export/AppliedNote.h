//===- AppliedNote.h - what a patched checkpoint says of itself -----------===//
//
// A patch holds for one token. The checkpoint that it was added to looks like any other, so it says
// which token that is: in its weights' metadata, and in words.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_EXPORT_APPLIEDNOTE_H
#define CTXC_LIB_EXPORT_APPLIEDNOTE_H

#include "ctxc/Export/PatchFile.h"
#include <map>

namespace ctxc {

/// Metadata of model.safetensors beside its format.
std::map<std::string, std::string> appliedMetadata(const PatchMetadata &metadata);

/// The text of README.md. `relativeRounding` is the share of the patch that rounding took.
/// A README.md of the original model is kept there as `originalReadme` (ChangedCheckpoint.h).
std::string appliedReadme(const PatchMetadata &metadata, double relativeRounding,
                          bool hasOriginalReadme);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_APPLIEDNOTE_H
