#include "ctxc/Export/ApplyPatch.h"
#include "AppliedNote.h"
#include "ChangedCheckpoint.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// The changes of one tensor, whole or of slices along its first dimension.
class Changes {
public:
  void add(const ParameterPatch *patch, int64_t first) { parts.push_back({first, patch}); }

  /// The change of one element, row-major.
  double at(uint64_t index) const {
    double change = 0;
    for (auto [first, patch] : parts) {
      if (index < first)
        continue;
      uint64_t own = index - first;
      if (patch->kind == ParameterPatch::Kind::Delta) {
        change += own < patch->delta.size() ? patch->delta[own] : 0;
        continue;
      }
      uint64_t columns = patch->shape[1];
      if (own / columns < patch->u.size())
        change += patch->u[own / columns] * patch->v[own % columns];
    }
    return change;
  }

private:
  std::vector<std::pair<uint64_t, const ParameterPatch *>> parts; ///< where each begins
};

} // namespace

Expected<ApplyReport> ctxc::applyPatch(const Checkpoint &checkpoint, const Patch &patch,
                                       const PatchMetadata &metadata, StringRef outDir,
                                       std::optional<DType> storage) {
  if (Error e = checkChangeable(checkpoint, storage, "a patch",
                                "stays beside them as the factors of the patch file"))
    return std::move(e);
  if (Error e = joinErrors(checkPatch(patch), checkShapesAgainst(checkpoint, patch)))
    return std::move(e);
  std::map<std::string, Changes> patches;
  for (const ParameterPatch &p : patch.parameters) {
    auto [stored, slice] = findStored(checkpoint, p.parameter);
    int64_t each = slice ? stored->elements() / stored->shape.front() : 0;
    patches[stored->name].add(&p, slice.value_or(0) * each);
  }
  CheckpointChange change;
  for (const auto &[name, changes] : patches)
    change.tensors[name] = [changes = &changes](uint64_t index) { return changes->at(index); };
  change.metadata = appliedMetadata(metadata);
  change.readme = [&](double relativeRounding, bool hasOriginal) {
    return appliedReadme(metadata, relativeRounding, hasOriginal);
  };
  return writeChanged(checkpoint, change, outDir, storage);
}
