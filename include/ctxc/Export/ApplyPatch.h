//===- ApplyPatch.h - a checkpoint with a patch added ---------------------===//
#ifndef CTXC_EXPORT_APPLYPATCH_H
#define CTXC_EXPORT_APPLYPATCH_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Program/Patch.h"
#include <optional>

namespace ctxc {

struct ApplyReport {
  unsigned changed = 0; ///< tensors
  /// ‖rounded − exact‖ / ‖change‖, Frobenius over all changed tensors: the part of the change
  /// that was lost by rounding to the storage type. Small for F32; in BF16 a change much
  /// smaller than its weights can lose most of itself.
  double relativeRounding = 0;
};

/// Writes the directory `outDir`, which must not exist: a checkpoint that
/// other programs load, with one model.safetensors. A patched tensor is stored + change,
/// computed in float64 and rounded to the tensor's own type. With `storage` (F32, F16 or BF16)
/// all floating tensors are rounded to that type instead, and config.json's dtype says so.
/// Other tensors and the tokenizer's and other small files are copied; tied tensors stay tied. The
/// weights' metadata and a README.md name the one token that `metadata` says the patch holds for; a
/// README.md of the checkpoint becomes MODEL_README.md.
/// The directory is built beside `outDir` and renamed: on any failure nothing remains. Fails if
/// checkShapesAgainst does, or if a number does not fit its storage type.
llvm::Expected<ApplyReport> applyPatch(const Checkpoint &checkpoint, const Patch &patch,
                                       const PatchMetadata &metadata, llvm::StringRef outDir,
                                       std::optional<DType> storage = std::nullopt);

/// "the patch holds for token 5279 at position 7 alone, and is stale for every other"
std::string staleness(const PatchMetadata &metadata);

} // namespace ctxc

#endif // CTXC_EXPORT_APPLYPATCH_H
