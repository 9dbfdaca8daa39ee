//===- PatchSet.h - the patches of several positions in one file ----------===//
//
// The tensors of a patch file (PatchFile.h), each with a leading dimension for the positions:
// NAME.u (positions, m, 1), NAME.v (positions, n, 1), NAME.delta (positions, …). `__metadata__` has
// format_version "2"; positions, ascending, in place of position; tokens up to the last of them;
// kept, of which a position's patch keeps those before it; rows_digests, one for each position, ""
// where only tokens are before it, in place of rows_digest; and the others as there.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_PATCHSET_H
#define CTXC_EXPORT_PATCHSET_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Export/PatchFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc {

/// Writes one patch of several.
using PatchWriter = llvm::function_ref<llvm::Error(const Patch &, const PatchMetadata &)>;

/// Writes `path` atomically: the patches of `positions`, which `make` gives in order to the
/// function that it gets; each is written at once, into the place that the file has for it.
/// `last` is the metadata of the last one; its `factors` are the type of all. Returns roundingOf
/// the patch of which rounding to that type takes most. Errors: those of writePatchFile; another
/// number of patches; a patch that changes other parameters than the first, as those of mixtures
/// do.
llvm::Expected<double> writePatchSet(llvm::StringRef path, llvm::ArrayRef<int64_t> positions,
                                     const PatchMetadata &last,
                                     llvm::function_ref<llvm::Error(PatchWriter)> make);

/// A file of several patches, or of one (PatchFile.h). Patches are read when they are asked for.
class PatchSet {
public:
  /// Errors: those of readPatchFile; tensors whose leading dimension is not that of the positions.
  static llvm::Expected<PatchSet> open(llvm::StringRef path);

  llvm::ArrayRef<int64_t> positions() const { return at; }
  /// What the last position's patch was made for.
  const PatchMetadata &last() const { return metadata; }
  /// Errors: a position without a patch; numbers that are not finite.
  llvm::Expected<std::pair<Patch, PatchMetadata>> read(int64_t position) const;

private:
  std::string path;
  std::unique_ptr<SafetensorsFile> file; ///< null: of one patch, which is `single`
  Patch single;
  std::vector<int64_t> at;
  std::vector<std::string> digests; ///< of the embeddings up to each position; "" where none is
  PatchMetadata metadata;
};

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHSET_H
