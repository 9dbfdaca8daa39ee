//===- PatchSet.h - the patches of several positions in one file ----------===//
//
// The tensors of a patch file (PatchFile.h), each with a leading dimension for the positions:
// NAME.u (positions, m, 1), NAME.v (positions, n, 1), NAME.delta (positions, …). `__metadata__` has
// format_version "2"; positions, ascending, in place of position; tokens up to the last of them;
// kept, where a position's patch keeps the positions before its own; rows_digests in place of
// rows_digest, one for each position, "" if there are only tokens up to it; and the other members
// of a patch file.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_PATCHSET_H
#define CTXC_EXPORT_PATCHSET_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Export/PatchFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc {

/// Writes one of several patches.
using PatchWriter = llvm::function_ref<llvm::Error(const Patch &, const PatchMetadata &)>;

/// Writes `path` atomically: the patches of `positions`, which `make` passes in order to the
/// function that it gets; each is written at once to its place in the file. `last` is the metadata
/// of the last one; its `factors` are the type of all. Returns the largest roundingOf of the
/// patches. Errors: those of writePatchFile; another number of patches; a patch that changes other
/// parameters than the first, as patches of mixtures do.
llvm::Expected<double> writePatchSet(llvm::StringRef path, llvm::ArrayRef<int64_t> positions,
                                     const PatchMetadata &last,
                                     llvm::function_ref<llvm::Error(PatchWriter)> make);

/// A file of several patches, or of one (PatchFile.h). Patches are read on demand.
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
  std::unique_ptr<SafetensorsFile> file; ///< null for a file of one patch, which is `single`
  Patch single;
  std::vector<int64_t> at;
  std::vector<std::string> digests; ///< of the embeddings up to each position; "" if there is none
  PatchMetadata metadata;
};

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHSET_H
