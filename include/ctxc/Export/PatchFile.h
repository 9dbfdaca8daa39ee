//===- PatchFile.h - a patch as a safetensors file ------------------------===//
//
// For a parameter stored under NAME with shape (m, n):
//   rank1   NAME.u (m, 1) and NAME.v (n, 1), so that stored + u vᵀ is the
//           patched tensor in its stored orientation and parametrisation;
//   delta   NAME.delta of the stored shape, so that stored + delta is.
// NAME may be "T[i]", with the slice's shape: slice i along the first dimension of the tensor
// stored under T (one expert of a bank that is stored as a whole).
// All tensors are F32, or of the type that `factors` says. `__metadata__` (strings): format_version
// "1", model_hash, tokens, position, kept, update, dtype, and, for a patch that is not stored in
// F32, factors (BF16 or F16) and rounding. If embeddings stood in place of tokens, `tokens` has the
// word `row` for each (2,row,row,529), and rows_digest identifies them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_PATCHFILE_H
#define CTXC_EXPORT_PATCHFILE_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Program/Patch.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ctxc {

/// What a patch was made for.
struct PatchMetadata {
  std::string modelHash; ///< Checkpoint::hash(): 64 hexadecimal digits
  std::vector<int64_t>
      tokens; ///< the full run's tokens: context, then the patched token; −1: an embedding
  /// digestOfEmbeddings (Program/Input.h) of the embeddings, which are not in the file; "" if there
  /// are none.
  std::string embeddingsDigest;
  int64_t position = 0;      ///< the patched token's position in `tokens`, kept in the reduced run
  std::vector<int64_t> kept; ///< ascending positions below `position` that the reduced run keeps
  std::string update = "least"; ///< least, balanced, naive, stable or scaled
  std::string dtype = "f32";    ///< storage type of the run's weights: f32, bf16 or f16
  DType factors = DType::F32;   ///< the type of the patch's numbers: F32, BF16 or F16
  /// roundingOf(patch, factors). A file of several patches has the largest of theirs.
  double rounding = 0;
};

/// Checks a patch without a model: shapes are non-negative, factors have the right sizes, Rank1 has
/// two dimensions, no parameter is patched twice, every number is finite, also as float32. Reports
/// all problems together, each as `parameter NAME: …`.
llvm::Error checkPatch(const Patch &patch);

/// The relative error of rounding a patch's numbers to `type`, ‖rounded − exact‖ / ‖exact‖ over all
/// parameters' changes (Frobenius norm). Fails if a number is too large for the type.
llvm::Expected<double> roundingOf(const Patch &patch, DType type);

/// Writes `path` atomically. Fails if the file could not be read back.
llvm::Error writePatchFile(llvm::StringRef path, const Patch &patch, const PatchMetadata &metadata);

/// Reads and checks `path`; all problems are reported together, each
/// `path: …`: half of a rank1 pair, factors of rank other than 1, an unknown
/// suffix, rank1 and delta for one parameter, a type other than the metadata's, numbers
/// that are not finite, metadata missing, unparsable or of another version, and a file of several
/// patches (PatchSet.h).
/// Parameters come in natural order of their names: layers.2 before layers.10.
llvm::Expected<std::pair<Patch, PatchMetadata>> readPatchFile(llvm::StringRef path);

/// Checks that the patch was made for this checkpoint: its hash, and each patched
/// parameter's presence, floating type and shape. Reports all problems together.
llvm::Error checkAgainst(const Checkpoint &checkpoint, const Patch &patch,
                         const PatchMetadata &metadata);

/// The stored tensor that a patch's parameter names, and the slice of it if the name has one; a
/// null tensor if the checkpoint has none.
std::pair<const TensorView *, std::optional<int64_t>> findStored(const Checkpoint &checkpoint,
                                                                 llvm::StringRef parameter);

/// Checks presence, type and shapes as checkAgainst does, but not the hash.
llvm::Error checkShapesAgainst(const Checkpoint &checkpoint, const Patch &patch);

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHFILE_H
