//===- ChangedCheckpoint.h - a checkpoint with changes added --------------===//
//
// What `ctxc apply` writes, of a patch or of an adapter: the checkpoint's files, with some tensors
// changed, and a page that says what was added.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_EXPORT_CHANGEDCHECKPOINT_H
#define CTXC_LIB_EXPORT_CHANGEDCHECKPOINT_H

#include "ctxc/Export/ApplyPatch.h"
#include <functional>
#include <map>

namespace ctxc {

struct CheckpointChange {
  /// Of each changed tensor, by its stored name: the change of one element, row-major.
  std::map<std::string, std::function<double(uint64_t)>> tensors;
  std::map<std::string, std::string> metadata; ///< of model.safetensors, beside its format
  /// The text of README.md. `relativeRounding` is the share of the change that rounding took; a
  /// README.md of the original model is kept as `originalReadme`.
  std::function<std::string(double relativeRounding, bool hasOriginal)> readme;
  /// Further files, by name.
  std::map<std::string, std::string> files;
};

inline constexpr llvm::StringLiteral originalReadme = "MODEL_README.md";

/// Fails where nothing can be added to the checkpoint: it is quantised, or `storage` is no type of
/// weights. `what` is what would be added, with its article, and `instead` what to do.
llvm::Error checkChangeable(const Checkpoint &checkpoint, std::optional<DType> storage,
                            llvm::StringRef what, llvm::StringRef instead);

/// Writes the new directory `outDir`, as ApplyPatch.h says.
llvm::Expected<ApplyReport> writeChanged(const Checkpoint &checkpoint,
                                         const CheckpointChange &change, llvm::StringRef outDir,
                                         std::optional<DType> storage);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_CHANGEDCHECKPOINT_H
