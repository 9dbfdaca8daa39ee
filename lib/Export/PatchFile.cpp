#include "ctxc/Export/PatchFile.h"
#include "PatchMetadata.h"
#include "PatchTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <set>

using namespace llvm;
using namespace ctxc;

namespace {

int64_t indexOfNonFinite(ArrayRef<double> values) {
  for (auto [i, value] : enumerate(values))
    if (!std::isfinite(static_cast<float>(value)))
      return static_cast<int64_t>(i);
  return -1;
}

} // namespace

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

Expected<double> ctxc::roundingOf(const Patch &patch, DType type) {
  if (type == DType::F32)
    return 0;
  double lost = 0, whole = 0;
  for (const ParameterPatch &p : patch.parameters) {
    auto rounded = [&](const std::vector<double> &values) {
      std::vector<double> back(values.size());
      readDoubles(type, bytesAs(type, values).data(), back);
      return back;
    };
    auto isFinite = [](ArrayRef<double> values) { return indexOfNonFinite(values) < 0; };
    auto dot = [](ArrayRef<double> a, ArrayRef<double> b) {
      double sum = 0;
      for (auto [x, y] : zip_equal(a, b))
        sum += x * y;
      return sum;
    };
    std::vector<double> u = rounded(p.u), v = rounded(p.v), delta = rounded(p.delta);
    if (!isFinite(u) || !isFinite(v) || !isFinite(delta))
      return makeError("parameter " + quoted(p.parameter) + ": has a number that " + nameOf(type) +
                       " does not hold; store the patch in F32 or BF16");
    // Of u vᵀ: û v̂ᵀ − u vᵀ = (û − u) v̂ᵀ + u (v̂ − v)ᵀ.
    std::vector<double> du = u, dv = v, changed = delta;
    auto subtract = [](std::vector<double> &from, const std::vector<double> &x) {
      for (auto [a, b] : zip_equal(from, x))
        a -= b;
    };
    subtract(du, p.u);
    subtract(dv, p.v);
    subtract(changed, p.delta);
    lost += dot(changed, changed) + dot(du, du) * dot(v, v) + 2 * dot(du, p.u) * dot(v, dv) +
            dot(p.u, p.u) * dot(dv, dv);
    whole += dot(p.delta, p.delta) + dot(p.u, p.u) * dot(p.v, p.v);
  }
  return whole > 0 ? std::sqrt(std::max(lost, 0.0) / whole) : 0;
}

Error ctxc::writePatchFile(StringRef path, const Patch &patch, const PatchMetadata &metadata) {
  Problems problems(path.str() + ": ");
  std::map<std::string, std::string> strings = metadataStrings(metadata);
  parsePatchMetadata(strings, [&](const Twine &message) { problems.add(message); });
  if (Error e = joinErrors(checkPatch(patch), problems.take()))
    return e;
  strings["format"] = "ctxc-patch";
  std::vector<TensorSource> tensors;
  addTensors(patch, metadata.factors, "", tensors);
  return writeSafetensors(path, std::move(tensors), strings);
}

Expected<std::pair<Patch, PatchMetadata>> ctxc::readPatchFile(StringRef path) {
  Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  Problems problems(path.str() + ": ");
  PatchMetadata metadata =
      parsePatchMetadata((*file)->metadata(), [&](const Twine &message) { problems.add(message); });
  if (isOfSeveral((*file)->metadata())) // whose tensors are others
    return problems.take();
  Expected<Patch> patch = readTensors((*file)->tensors(), metadata.factors, "", problems);
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
    if (!isSameShape(p.shape, shape))
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
