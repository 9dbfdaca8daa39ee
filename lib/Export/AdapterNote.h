//===- AdapterNote.h - what a checkpoint with an adapter says of itself ---===//
#ifndef CTXC_LIB_EXPORT_ADAPTERNOTE_H
#define CTXC_LIB_EXPORT_ADAPTERNOTE_H

#include "ctxc/Export/ApplyAdapter.h"
#include <map>

namespace ctxc {

/// Metadata of model.safetensors beside its format. `modelHash` is the original weights'.
std::map<std::string, std::string>
adapterMetadata(const Adapter &adapter, const AdapterOrigin &origin, llvm::StringRef modelHash);

/// The text of README.md; `relativeRounding` is the share of the adapter's changes that rounding
/// took.
std::string adapterReadme(const Adapter &adapter, const AdapterOrigin &origin,
                          llvm::StringRef modelHash, double relativeRounding,
                          bool hasOriginalReadme);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_ADAPTERNOTE_H
