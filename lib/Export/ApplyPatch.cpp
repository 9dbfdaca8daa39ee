#include "ctxc/Export/ApplyPatch.h"
#include "AppliedNote.h"
#include "SmallFiles.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <cstdio>

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t chunkElements = 1 << 18;

/// The changes of one tensor, whole or of slices along its first dimension.
class Changes {
public:
  void add(const ParameterPatch *patch, int64_t first) { parts.push_back({first, patch}); }
  bool empty() const { return parts.empty(); }

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

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// Writes one tensor of the checkpoint, patched and rounded, piece by piece.
class TensorCopy {
public:
  TensorCopy(const Checkpoint &checkpoint, const TensorView &view, const Changes &changes, DType to)
      : checkpoint(checkpoint), view(view), changes(changes), to(to) {}

  Error write(raw_ostream &os) {
    if (changes.empty() && to == view.dtype)
      return copyBytes(os);
    uint64_t count = view.elements(), width = bitsOf(view.dtype) / 8;
    for (uint64_t from = 0; from < count; from += chunkElements) {
      uint64_t n = std::min(chunkElements, count - from);
      bytes.resize(n * width);
      if (Error e = checkpoint.read(view, from * width, bytes))
        return e;
      if (Error e = convert(from, n))
        return e;
      os.write(reinterpret_cast<const char *>(rounded.data()), rounded.size());
    }
    return Error::success();
  }

  double changeSquared = 0, lostSquared = 0; ///< sums over what was written so far

private:
  Error copyBytes(raw_ostream &os) {
    for (uint64_t from = 0; from < view.bytes; from += chunkElements) {
      bytes.resize(std::min(chunkElements, view.bytes - from));
      if (Error e = checkpoint.read(view, from, bytes))
        return e;
      os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    }
    return Error::success();
  }

  /// Patches and rounds `bytes`, the elements [from, from + n), into `rounded`.
  Error convert(uint64_t from, uint64_t n) {
    exact.resize(n);
    back.resize(n);
    readDoubles(view.dtype, bytes.data(), exact);
    for (uint64_t i = 0; !changes.empty() && i < n; ++i) {
      double change = changes.at(from + i);
      exact[i] += change;
      changeSquared += change * change;
    }
    rounded.resize(n * bitsOf(to) / 8);
    writeDoubles(to, exact, rounded.data());
    readDoubles(to, rounded.data(), back);
    for (uint64_t i = 0; i < n; ++i) {
      if (!std::isfinite(back[i]))
        return makeError(view.file + ": tensor " + quoted(view.name) + ": element " +
                         Twine(from + i) + (changes.empty() ? " is " : ", patched, is ") +
                         numberText(exact[i]) + ", which is not a finite number of type " +
                         nameOf(to));
      if (!changes.empty())
        lostSquared += (back[i] - exact[i]) * (back[i] - exact[i]);
    }
    return Error::success();
  }

  const Checkpoint &checkpoint;
  const TensorView &view;
  const Changes &changes;
  DType to;
  std::vector<uint8_t> bytes, rounded;
  std::vector<double> exact, back;
};

Expected<ApplyReport> writeWeights(const Checkpoint &checkpoint, const Patch &patch,
                                   const PatchMetadata &metadata, StringRef directory,
                                   std::optional<DType> storage) {
  std::map<std::string, Changes> patches;
  for (const ParameterPatch &p : patch.parameters) {
    auto [stored, slice] = findStored(checkpoint, p.parameter);
    int64_t each = slice ? stored->elements() / stored->shape.front() : 0;
    patches[stored->name].add(&p, slice.value_or(0) * each);
  }
  static const Changes none;
  ApplyReport report;
  double changeSquared = 0, lostSquared = 0;
  std::vector<TensorSource> tensors;
  for (const TensorView &view : checkpoint.tensors()) {
    auto found = patches.find(view.name);
    const Changes &changes = found == patches.end() ? none : found->second;
    DType to = storage && isFloating(view.dtype) ? *storage : view.dtype;
    report.patched += !changes.empty();
    TensorSource source;
    source.name = view.name;
    source.dtype = to;
    source.shape = view.shape;
    source.write = [&checkpoint, &view, &changes, to, &changeSquared,
                    &lostSquared](raw_ostream &os) {
      TensorCopy copy(checkpoint, view, changes, to);
      Error e = copy.write(os);
      changeSquared += copy.changeSquared;
      lostSquared += copy.lostSquared;
      return e;
    };
    tensors.push_back(std::move(source));
  }
  std::map<std::string, std::string> strings = appliedMetadata(metadata);
  strings["format"] = "pt"; // without which transformers refuses a file
  if (Error e = writeSafetensors(pathIn(directory, "model.safetensors"), std::move(tensors),
                                 std::move(strings)))
    return std::move(e);
  if (changeSquared > 0)
    report.relativeRounding = std::sqrt(lostSquared / changeSquared);
  return report;
}

/// Quantised weights cannot hold a patch: rounding to their few bits would lose all of it.
Error checkWritable(const Checkpoint &checkpoint) {
  std::string what;
  if (checkpoint.isGguf())
    what = ": is a GGUF file";
  for (const TensorView &view : checkpoint.tensors())
    if (what.empty() && isQuantized(view.dtype))
      what = ": stores " + quoted(view.name) + " as " + nameOf(view.dtype).str();
  if (what.empty())
    return Error::success();
  return makeError(
      checkpoint.directory() + what +
      "; quantised weights cannot hold a patch, which stays beside them as the factors "
      "of the patch file");
}

/// README.md, in the place of the checkpoint's, which was copied.
Error writeReadme(const PatchMetadata &metadata, const ApplyReport &report, StringRef directory) {
  std::string readme = pathIn(directory, "README.md");
  bool hasOriginal = sys::fs::exists(readme);
  if (hasOriginal)
    if (std::error_code ec = sys::fs::rename(readme, pathIn(directory, originalReadme)))
      return makeError(readme + ": cannot rename: " + ec.message());
  return writeFileAtomically(readme, [&](raw_pwrite_stream &os) {
    os << appliedReadme(metadata, report.relativeRounding, hasOriginal);
    return Error::success();
  });
}

Expected<ApplyReport> build(const Checkpoint &checkpoint, const Patch &patch,
                            const PatchMetadata &metadata, StringRef directory,
                            std::optional<DType> storage) {
  if (Error e = writeConfig(checkpoint, directory, storage))
    return std::move(e);
  if (Error e = copySmallFiles(checkpoint, directory))
    return std::move(e);
  Expected<ApplyReport> report = writeWeights(checkpoint, patch, metadata, directory, storage);
  if (!report)
    return report;
  if (Error e = writeReadme(metadata, *report, directory))
    return std::move(e);
  if (Error e = checkpoint.checkUnchanged())
    return std::move(e);
  return report;
}

} // namespace

Expected<ApplyReport> ctxc::applyPatch(const Checkpoint &checkpoint, const Patch &patch,
                                       const PatchMetadata &metadata, StringRef outDir,
                                       std::optional<DType> storage) {
  if (storage && (!isFloating(*storage) || *storage == DType::F64))
    return makeError("cannot store weights as " + nameOf(*storage) + ", expected F32, F16 or BF16");
  if (Error e = checkWritable(checkpoint))
    return std::move(e);
  if (Error e = joinErrors(checkPatch(patch), checkShapesAgainst(checkpoint, patch)))
    return std::move(e);
  ApplyReport report;
  Error failure =
      writeNewDirectory(outDir, "a checkpoint directory", [&](StringRef directory) -> Error {
        return build(checkpoint, patch, metadata, directory, storage).moveInto(report);
      });
  if (failure)
    return std::move(failure);
  return report;
}
