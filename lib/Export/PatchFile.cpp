#include "ctxc/Export/PatchFile.h"
#include "PatchMetadata.h"
#include "PatchTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <set>

using namespace llvm;
using namespace ctxc;

static int64_t indexOfNonFinite(ArrayRef<double> values) {
  for (auto [i, value] : enumerate(values))
    if (!std::isfinite(static_cast<float>(value)))
      return static_cast<int64_t>(i);
  return -1;
}

Error ctxc::checkPatch(const Patch &patch) {
  Problems problems("");
  std::set<std::string> seen;
  for (const ParameterPatch &p : patch.parameters) {
    std::string name = "parameter " + quoted(p.parameter);
    if (!seen.insert(p.parameter).second)
      problems.add(name + ": is patched twice");
    bool rank1 = p.kind == ParameterPatch::Kind::Rank1;
    auto check = [&](const char *what, const std::vector<double> &values, uint64_t expected) {
      if (values.size() != expected)
        problems.add(name + ": found " + Twine(values.size()) + " entries in " + what +
                     ", expected " + Twine(expected) + " for shape " + shapeText(p.shape));
      if (int64_t i = indexOfNonFinite(values); i >= 0)
        problems.add(name + ": entry " + Twine(i) + " of " + what +
                     " is not a finite float32 number");
    };
    if ((rank1 && p.shape.size() != 2) || any_of(p.shape, [](int64_t n) { return n < 0; })) {
      problems.add(name + ": found shape " + shapeText(p.shape) +
                   (rank1 ? ", expected two sizes" : ", expected sizes"));
      continue;
    }
    if (rank1) {
      check("u", p.u, p.shape[0]);
      check("v", p.v, p.shape[1]);
      continue;
    }
    uint64_t elements = 1;
    for (int64_t size : p.shape)
      elements *= static_cast<uint64_t>(size); // unsigned: a wrapped product is just unequal
    check("delta", p.delta, elements);
  }
  return problems.take();
}

Error ctxc::writePatchFile(StringRef path, const Patch &patch, const PatchMetadata &metadata) {
  Problems problems(path.str() + ": ");
  std::map<std::string, std::string> strings = metadataStrings(metadata);
  parsePatchMetadata(strings, [&](const Twine &message) { problems.add(message); });
  if (Error e = joinErrors(checkPatch(patch), problems.take()))
    return e;
  strings["format"] = "ctxc-patch";
  std::vector<TensorSource> tensors;
  addTensors(patch, "", tensors);
  return writeSafetensors(path, std::move(tensors), strings);
}

Expected<std::pair<Patch, PatchMetadata>> ctxc::readPatchFile(StringRef path) {
  Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  Problems problems(path.str() + ": ");
  PatchMetadata metadata =
      parsePatchMetadata((*file)->metadata(), [&](const Twine &message) { problems.add(message); });
  Expected<Patch> patch = readTensors((*file)->tensors(), "", problems);
  if (!patch)
    return patch.takeError();
  return std::make_pair(std::move(*patch), std::move(metadata));
}

std::pair<const TensorView *, std::optional<int64_t>> ctxc::findStored(const Checkpoint &checkpoint,
                                                                       StringRef parameter) {
  if (const TensorView *stored = checkpoint.find(parameter))
    return {stored, std::nullopt};
  if (auto slice = splitSliceName(parameter))
    return {checkpoint.find(slice->first), slice->second};
  return {nullptr, std::nullopt};
}

Error ctxc::checkShapesAgainst(const Checkpoint &checkpoint, const Patch &patch) {
  Problems problems(checkpoint.directory().str() + ": ");
  for (const ParameterPatch &p : patch.parameters) {
    std::string name = "parameter " + quoted(p.parameter);
    auto [stored, slice] = findStored(checkpoint, p.parameter);
    if (!stored) {
      problems.add(name + " of the patch is not in the checkpoint");
      continue;
    }
    ArrayRef<int64_t> shape = stored->shape;
    if (slice && (shape.size() < 2 || *slice >= shape.front())) {
      problems.add(name + ": the stored tensor, of shape " + shapeText(shape) +
                   ", has no such slice");
      continue;
    }
    if (slice)
      shape = shape.drop_front();
    if (ArrayRef<int64_t>(p.shape) != shape)
      problems.add(name + ": the patch has shape " + shapeText(p.shape) + ", expected the stored " +
                   shapeText(shape));
    if (!isReadable(stored->dtype))
      problems.add(name + ": is stored as " + nameOf(stored->dtype) +
                   ", expected F32, F16, BF16, F64 or a quantised format");
  }
  return problems.take();
}

Error ctxc::checkAgainst(const Checkpoint &checkpoint, const Patch &patch,
                         const PatchMetadata &metadata) {
  Expected<std::string> hash = checkpoint.hash();
  if (!hash)
    return hash.takeError();
  Error errors = Error::success();
  if (*hash != metadata.modelHash)
    errors =
        makeError(checkpoint.directory() + ": found weights with hash " + *hash + ", expected " +
                  metadata.modelHash + "; the patch was made for another checkpoint");
  return joinErrors(std::move(errors), checkShapesAgainst(checkpoint, patch));
}
