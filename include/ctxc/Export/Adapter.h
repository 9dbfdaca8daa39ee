//===- Adapter.h - a patch as a LoRA adapter for other programs -----------===//
//
// A rank1 patch ΔW = u vᵀ is a LoRA of rank 1: W z + s B (A z) with A (1, in), B (out, 1)
// and the scale s = alpha / r = 1 / 1, so that the product is exact in float32. The
// adapter holds for one token at one position: it is run alone (after the kept tokens, which
// are run without the adapter), at its absolute position.
//
// A LoRA can change only matrices. Changes of vectors (a bias, a norm's scale), of slices of a
// tensor and of single experts are refused.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_ADAPTER_H
#define CTXC_EXPORT_ADAPTER_H

#include "ctxc/Export/PatchFile.h"
#include "llvm/ADT/StringSet.h"

namespace ctxc {

/// What an adapter says about the model, beyond what a patch file says.
struct AdapterModel {
  std::string directory;     ///< of the checkpoint, as the adapter names its base model
  std::string modelType;     ///< config.json's model_type
  llvm::StringSet<> inFirst; ///< stored matrices of shape (in, out), GPT-2's Conv1D
};

/// Whether a LoRA can hold the patch; the error names the first parameter that it cannot hold
/// and why.
llvm::Error checkLora(const Patch &patch);

/// Writes the directory `outDir`, which must not exist: adapter_config.json and
/// adapter_model.safetensors (float32, with the patch's metadata) as PEFT loads them onto
/// transformers' model. Parameters are named as transformers names its modules. The directory is
/// built beside `outDir` and renamed: on any failure nothing remains. Fails if checkLora or
/// checkPatch does.
llvm::Error writePeftAdapter(llvm::StringRef outDir, const Patch &patch,
                             const PatchMetadata &metadata, const AdapterModel &model);

/// Writes the file `path` atomically: a GGUF adapter that llama.cpp loads with --lora, with
/// tensors NAME.lora_a and NAME.lora_b under GGUF's names (blk.0.ffn_down.weight). Fails also for
/// a model type or a parameter without such a name, or whose rows llama.cpp stores in another
/// order.
llvm::Error writeGgufLora(llvm::StringRef path, const Patch &patch, const PatchMetadata &metadata,
                          const AdapterModel &model);

} // namespace ctxc

#endif // CTXC_EXPORT_ADAPTER_H
