//===- LastingAdapter.h - a lasting adapter as a directory ----------------===//
//
// For PEFT, adapter_config.json and adapter_model.safetensors, as PEFT loads them onto
// transformers' model: NAME.lora_A (rank, in) and NAME.lora_B (out, rank) of each matrix, with
// alpha equal to the rank, so that the scale is 1; and the whole changed weights of norms
// (modules_to_save). The metadata's `prefix` has the tokens in front of every text, and `seen` the
// places of those that texts see, where these are not all.
//
// Virtual entries are the adapter of PEFT's prefix tuning: peft_type PREFIX_TUNING, and the tensor
// prompt_embeddings.
//
// prefix_cache.safetensors has what the model keeps of these tokens: layers.N.keys and
// layers.N.values, each (heads, tokens, width), N counted over the layers with attention. Its
// metadata has `prefix` and `seen` too.
//
// What an exported program stores belongs to no module that PEFT knows. Its adapter is
// adapter_model.safetensors alone, which has, for a parameter stored under NAME (of one slice:
// NAME[i]),
//   a matrix   NAME.u (rows, rank) and NAME.v (columns, rank): stored + u vᵀ is the changed one;
//   a vector   NAME.delta, which is added to it,
// all in F32, as a patch file has them (PatchFile.h), but of any rank. The metadata has format
// "ctxc-adapter", format_version "1", and `prefix`.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_LASTINGADAPTER_H
#define CTXC_EXPORT_LASTINGADAPTER_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/KeyRules.h"
#include "ctxc/Program/Adapter.h"

namespace ctxc {

/// The keys of adapter_config.json; each of PEFT's LoraConfig and PrefixTuningConfig has a row.
extern const KeyTable peftKeys, prefixKeys;

/// A file that goes beside the adapter.
struct AdapterFile {
  std::string name, content;
};

/// Whether parameters of the checkpoint have no other names than those that they are stored under:
/// it does not say of which model type of transformers it is.
inline bool namesParametersAlone(const Checkpoint &checkpoint) {
  return !checkpoint.config().getString("model_type");
}

/// Whether transformers has one parameter for the experts' matrices that a checkpoint stores as
/// `bank` (SliceName.h), which an adapter can then change.
bool hasExpertName(llvm::StringRef bank);

/// Fails where PEFT's prefix tuning has no place for entries of these shapes: it has one number of
/// heads and one width for all layers, and for keys and values.
llvm::Error checkPrefixTuning(const VirtualEntries &entries);

/// Writes the directory `outDir`, which must not exist; on any failure nothing remains. `cache`: of
/// the adapter's prefix; without it, there is no prefix_cache.safetensors. Errors: an adapter that
/// changes nothing; a parameter that is no module's weight, or that `checkpoint`, the adapter's
/// model, does not have.
llvm::Error writeLastingAdapter(llvm::StringRef outDir, const Adapter &adapter,
                                const Checkpoint &checkpoint, llvm::ArrayRef<AdapterFile> files,
                                llvm::ArrayRef<KeysAndValues> cache = {});

/// The bytes of a GGUF file with the adapter, which llama.cpp loads with --lora; its key
/// `ctxc.prefix` has the tokens in front. Errors: an adapter that changes vectors; a model type or
/// a parameter without a name in GGUF, or whose rows llama.cpp stores in another order.
llvm::Expected<std::string> lastingGguf(const Adapter &adapter, const Checkpoint &checkpoint);

/// Reads such a directory, or one that PEFT wrote, as PEFT does. An adapter without `prefix` gets
/// `prefix`. Errors: keys that mean another change (peftKeys), tensors that are missing, too many,
/// of modules that the keys exclude, of other shapes or not finite; modules that `checkpoint` does
/// not have.
llvm::Expected<Adapter> readLastingAdapter(llvm::StringRef directory, const Checkpoint &checkpoint,
                                           llvm::ArrayRef<int64_t> prefix);

} // namespace ctxc

#endif // CTXC_EXPORT_LASTINGADAPTER_H
