//===- PrefixAdapter.h - virtual entries as PEFT's prefix tuning ----------===//
//
// adapter_model.safetensors has `prompt_embeddings`: a row for each entry, and in it for each layer
// the keys of all heads, and then the values. PEFT puts them into the cache as they are, in front
// of the tokens that it is given, which follow at the positions behind them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_EXPORT_PREFIXADAPTER_H
#define CTXC_LIB_EXPORT_PREFIXADAPTER_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Export/Adapter.h"
#include "ctxc/Program/Adapter.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// What PEFT's config calls it.
constexpr llvm::StringLiteral prefixTuning = "PREFIX_TUNING";

/// The entries as one tensor. Errors: heads that differ in number or width from layer to layer, or
/// whose keys and values differ in width, which PEFT has no place for.
llvm::Expected<TensorSource> prefixTensor(const VirtualEntries &entries);
/// adapter_config.json of such entries.
llvm::json::Object prefixConfig(const VirtualEntries &entries, const AdapterModel &model);

/// adapter_config.json of prefix tuning.
struct PrefixSettings {
  int64_t count = 0, tokenWidth = 0, heads = 0, layers = 0;

  /// None where `text` is of another kind of adapter. Errors: keys that mean something else
  /// (prefixKeys), numbers that do not fit each other.
  static llvm::Expected<std::optional<PrefixSettings>> read(llvm::StringRef text,
                                                            llvm::StringRef path);
};

/// Reads what PEFT or the above wrote; `directory` is for messages. Errors: another number of
/// tensors or another shape, numbers that are not finite.
llvm::Expected<VirtualEntries> readPrefix(llvm::StringRef directory, const PrefixSettings &settings,
                                          const SafetensorsFile &file);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PREFIXADAPTER_H
