//===- ApplyPatch.h - a checkpoint with a patch added ---------------------===//
#ifndef CTXC_EXPORT_APPLYPATCH_H
#define CTXC_EXPORT_APPLYPATCH_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Program/Patch.h"
#include <optional>

namespace ctxc {

struct ApplyReport {
  unsigned patched = 0; ///< tensors that were changed
  /// ‖rounded − exact‖ / ‖change‖, Frobenius over all patched tensors: the part of the patch
  /// that was lost by rounding to the storage type. Small for F32; in BF16 a patch much
  /// smaller than its weights can lose most of itself.
  double relativeRounding = 0;
};

/// Writes the directory `outDir`, which must not exist: a checkpoint that
/// other programs load, with one model.safetensors. A patched tensor is stored + change,
/// computed in float64 and rounded to the tensor's own type. With `storage` (F32, F16 or BF16)
/// all floating tensors are rounded to that type instead, and config.json's dtype says so.
/// Other tensors and the tokenizer's and other small files are copied; tied tensors stay tied.
/// The directory is built beside `outDir` and renamed: on any failure nothing remains. Fails where
/// checkShapesAgainst does, and where a number does not fit its storage type.
llvm::Expected<ApplyReport> applyPatch(const Checkpoint &checkpoint, const Patch &patch,
                                       llvm::StringRef outDir,
                                       std::optional<DType> storage = std::nullopt);

} // namespace ctxc

#endif // CTXC_EXPORT_APPLYPATCH_H
