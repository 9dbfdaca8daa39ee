//===- ApplyAdapter.h - a checkpoint with an adapter added ----------------===//
//
// A lasting adapter beside its model needs PEFT; added to the weights, it needs nothing. The
// directory says what was added, how good its card says it is, and which tokens still stand in
// front of every text.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_APPLYADAPTER_H
#define CTXC_EXPORT_APPLYADAPTER_H

#include "ctxc/Export/ApplyPatch.h"
#include "ctxc/Program/Adapter.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// Where an adapter comes from, and what is said of it there.
struct AdapterOrigin {
  std::string sha256; ///< of adapter_model.safetensors
  /// card.json, where ctxc wrote one: the adapter stands for a context, as well as the card says.
  std::optional<llvm::json::Object> card;
  std::string prefixText;  ///< prefix.txt: what is kept of the context; empty where nothing is
  bool saysPrefix = false; ///< whether it says what stands in front of every text
  double strength = 1;     ///< by which its changes were multiplied since they were read
};

/// Whether `directory` has an adapter_config.json.
bool isAdapterDirectory(llvm::StringRef directory);

/// Reads what is beside an adapter. Errors: no adapter_model.safetensors; one that `ctxc patch`
/// wrote, which holds for one token; a card that is no JSON object.
llvm::Expected<AdapterOrigin> readAdapterOrigin(llvm::StringRef directory);

/// Writes the directory `outDir` as applyPatch does, with the adapter's changes. The weights'
/// metadata and README.md say that it is an adapter, its strength, its tokens in front and its
/// card's figures. Errors also: a changed parameter that is not there, is quantised, or of another
/// shape; one that is changed twice.
llvm::Expected<ApplyReport> applyAdapter(const Checkpoint &checkpoint, const Adapter &adapter,
                                         const AdapterOrigin &origin, llvm::StringRef outDir,
                                         std::optional<DType> storage = std::nullopt);

/// "the adapter approximates a context of 211 tokens: 71.5 % of its effect on text that was not
/// fitted"; without a card, that nothing says how good it is.
std::string approximation(const AdapterOrigin &origin);

} // namespace ctxc

#endif // CTXC_EXPORT_APPLYADAPTER_H
