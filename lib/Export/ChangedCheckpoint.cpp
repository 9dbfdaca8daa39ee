#include "ChangedCheckpoint.h"
#include "SmallFiles.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/StrictJson.h"
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

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// The change of an element; empty where a tensor stays as it is.
using ChangeAt = std::function<double(uint64_t)>;

/// Writes one tensor of the checkpoint, changed and rounded, piece by piece.
class TensorCopy {
public:
  TensorCopy(const Checkpoint &checkpoint, const TensorView &view, const ChangeAt &change, DType to)
      : checkpoint(checkpoint), view(view), change(change), to(to) {}

  Error write(raw_ostream &os) {
    if (!change && to == view.dtype)
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

  /// Changes and rounds `bytes`, the elements [from, from + n), into `rounded`.
  Error convert(uint64_t from, uint64_t n) {
    exact.resize(n);
    back.resize(n);
    readDoubles(view.dtype, bytes.data(), exact);
    for (uint64_t i = 0; change && i < n; ++i) {
      double by = change(from + i);
      exact[i] += by;
      changeSquared += by * by;
    }
    rounded.resize(n * bitsOf(to) / 8);
    writeDoubles(to, exact, rounded.data());
    readDoubles(to, rounded.data(), back);
    for (uint64_t i = 0; i < n; ++i) {
      if (!std::isfinite(back[i]))
        return makeError(view.file + ": tensor " + quoted(view.name) + ": element " +
                         Twine(from + i) + (change ? ", changed, is " : " is ") +
                         numberText(exact[i]) + ", which is not a finite number of type " +
                         nameOf(to));
      if (change)
        lostSquared += (back[i] - exact[i]) * (back[i] - exact[i]);
    }
    return Error::success();
  }

  const Checkpoint &checkpoint;
  const TensorView &view;
  const ChangeAt &change;
  DType to;
  std::vector<uint8_t> bytes, rounded;
  std::vector<double> exact, back;
};

Expected<ApplyReport> writeWeights(const Checkpoint &checkpoint, const CheckpointChange &change,
                                   StringRef directory, std::optional<DType> storage) {
  static const ChangeAt none;
  ApplyReport report;
  double changeSquared = 0, lostSquared = 0;
  std::vector<TensorSource> tensors;
  for (const TensorView &view : checkpoint.tensors()) {
    auto found = change.tensors.find(view.name);
    const ChangeAt &changeAt = found == change.tensors.end() ? none : found->second;
    DType to = storage && isFloating(view.dtype) ? *storage : view.dtype;
    report.changed += bool(changeAt);
    TensorSource source;
    source.name = view.name;
    source.dtype = to;
    source.shape = view.shape;
    source.write = [&checkpoint, &view, &changeAt, to, &changeSquared,
                    &lostSquared](raw_ostream &os) {
      TensorCopy copy(checkpoint, view, changeAt, to);
      Error e = copy.write(os);
      changeSquared += copy.changeSquared;
      lostSquared += copy.lostSquared;
      return e;
    };
    tensors.push_back(std::move(source));
  }
  std::map<std::string, std::string> strings = change.metadata;
  strings["format"] = "pt"; // without which transformers refuses a file
  if (Error e = writeSafetensors(pathIn(directory, "model.safetensors"), std::move(tensors),
                                 std::move(strings)))
    return std::move(e);
  if (changeSquared > 0)
    report.relativeRounding = std::sqrt(lostSquared / changeSquared);
  return report;
}

Error writeText(StringRef path, StringRef text) {
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) {
    os << text;
    return Error::success();
  });
}

/// README.md, in the place of the checkpoint's, which was copied, and the further files.
Error writeNotes(const CheckpointChange &change, const ApplyReport &report, StringRef directory) {
  std::string readme = pathIn(directory, "README.md");
  bool hasOriginal = sys::fs::exists(readme);
  if (hasOriginal)
    if (std::error_code ec = sys::fs::rename(readme, pathIn(directory, originalReadme)))
      return makeError(readme + ": cannot rename: " + ec.message());
  for (const auto &[name, text] : change.files)
    if (Error e = writeText(pathIn(directory, name), text))
      return e;
  return writeText(readme, change.readme(report.relativeRounding, hasOriginal));
}

Expected<ApplyReport> build(const Checkpoint &checkpoint, const CheckpointChange &change,
                            StringRef directory, std::optional<DType> storage) {
  if (Error e = writeConfig(checkpoint, directory, storage))
    return std::move(e);
  if (Error e = copySmallFiles(checkpoint, directory))
    return std::move(e);
  Expected<ApplyReport> report = writeWeights(checkpoint, change, directory, storage);
  if (!report)
    return report;
  if (Error e = writeNotes(change, *report, directory))
    return std::move(e);
  if (Error e = checkpoint.checkUnchanged())
    return std::move(e);
  return report;
}

} // namespace

Error ctxc::checkChangeable(const Checkpoint &checkpoint, std::optional<DType> storage,
                            StringRef what, StringRef instead) {
  if (storage && (!isFloating(*storage) || *storage == DType::F64))
    return makeError("cannot store weights as " + nameOf(*storage) + ", expected F32, F16 or BF16");
  std::string found;
  if (checkpoint.isGguf())
    found = ": is a GGUF file";
  for (const TensorView &view : checkpoint.tensors())
    if (found.empty() && isQuantized(view.dtype))
      found = ": stores " + quoted(view.name) + " as " + nameOf(view.dtype).str();
  if (found.empty())
    return Error::success();
  return makeError(checkpoint.directory() + found + "; quantised weights cannot hold " + what +
                   ", which " + instead);
}

Expected<ApplyReport> ctxc::writeChanged(const Checkpoint &checkpoint,
                                         const CheckpointChange &change, StringRef outDir,
                                         std::optional<DType> storage) {
  ApplyReport report;
  Error failure =
      writeNewDirectory(outDir, "a checkpoint directory", [&](StringRef directory) -> Error {
        return build(checkpoint, change, directory, storage).moveInto(report);
      });
  if (failure)
    return std::move(failure);
  return report;
}
