//===- PatchShard.h - the patches of many prompts in one safetensors file --===//
//
// Each prompt has a number. The tensors of its patch at a position are named as in PatchFile.h,
// with the prefix NUMBER/POSITION/, such as "12/5/model.layers.0.mlp.up_proj.weight.u".
// `__metadata__` has what all patches share (format "ctxc-patches", format_version, model_hash,
// update, dtype), and for each prompt NUMBER.tokens, up to the last position that is patched, and
// NUMBER.kept.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPORT_PATCHSHARD_H
#define CTXC_EXPORT_PATCHSHARD_H

#include "ctxc/Export/PatchFile.h"
#include <map>

namespace ctxc {

class PatchShard {
public:
  /// Adds the patch of a prompt at metadata.position. Errors: those of checkPatch.
  llvm::Error add(int64_t prompt, Patch patch, const PatchMetadata &metadata);

  bool empty() const { return patches.empty(); }
  /// The size of all tensors, as they are written.
  uint64_t bytes() const { return size; }

  /// Writes `path` atomically, and forgets the patches.
  llvm::Error write(llvm::StringRef path);

private:
  std::map<std::pair<int64_t, int64_t>, Patch> patches; ///< by prompt and position
  std::map<int64_t, PatchMetadata> prompts;             ///< of the last position that was added
  uint64_t size = 0;
};

/// The patch of a prompt at a position, with what it was made for. Errors: the file has none, or is
/// damaged.
llvm::Expected<std::pair<Patch, PatchMetadata>> readFromShard(llvm::StringRef path, int64_t prompt,
                                                              int64_t position);

} // namespace ctxc

#endif // CTXC_EXPORT_PATCHSHARD_H
