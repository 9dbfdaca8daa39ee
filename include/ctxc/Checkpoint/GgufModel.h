//===- GgufModel.h - a GGUF file as a Hugging Face checkpoint -------------===//
//
// llama.cpp's converter renames tensors, turns config.json into keys of the
// metadata, and for some architectures changes numbers. Names and keys are translated
// back here, so that one importer for each family reads both; StorageConventions
// describes the changed numbers.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_GGUFMODEL_H
#define CTXC_CHECKPOINT_GGUFMODEL_H

#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/KeyRules.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// The keys of a GGUF file's metadata: those of its architecture, without its name in front, which
/// are read or refused by the family; and all others but those of the tokenizer.
extern const KeyTable ggufArchitectureKeys, ggufKeys;

/// How the stored numbers differ from those that the family's classes store.
struct StorageConventions {
  /// A scale is stored whole where the family stores its distance from one (Gemma).
  bool wholeScales = false;
  /// The rows of W_q and W_k are ordered so that a rotation pairs 2i with 2i + 1 and not i
  /// with i + n (Llama).
  bool interleavedHeads = false;
  /// A matrix that gives q, k and v has the rows of all queries first, then those of all keys, then
  /// those of all values, and not head by head (BLOOM, Falcon, GPT-NeoX).
  bool queriesFirst = false;
  /// Matrices are stored as (out, in) where the family stores (in, out) (GPT-2).
  bool plainMatrices = false;
};

struct GgufModel {
  llvm::json::Object config;       ///< as in config.json
  std::vector<TensorView> tensors; ///< named as transformers names them; others keep theirs
  StorageConventions conventions;
};

/// Reads the llama.cpp architectures of all families that ctxc runs and that llama.cpp computes in
/// the same way; a bank becomes a tensor for each expert. Errors, joined, each beginning with the
/// path: another architecture; a key that is missing, has another type, contradicts the tensors, or
/// changes numbers and is not known here.
llvm::Expected<GgufModel> readGgufModel(const GgufFile &file);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_GGUFMODEL_H
