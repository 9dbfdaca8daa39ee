#include "ctxc/Export/PatchFile.h"
#include "PatchMetadata.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
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

/// Collects problems; after the first fifty they are only counted.
class Problems {
public:
  explicit Problems(StringRef prefix) : prefix(prefix) {}
  void add(const Twine &message) {
    if (count++ < limit)
      errors = joinErrors(std::move(errors), makeError(prefix + message));
  }
  Error take() {
    if (count > limit)
      errors = joinErrors(std::move(errors), makeError(prefix + "and " + Twine(count - limit) +
                                                       " more problems of the kind"));
    return std::move(errors);
  }

private:
  static constexpr unsigned limit = 50;
  std::string prefix;
  Error errors = Error::success();
  unsigned count = 0;
};

/// Compares runs of digits as numbers, everything else as bytes.
bool naturalLess(StringRef a, StringRef b) {
  StringRef wholeA = a, wholeB = b;
  while (!a.empty() && !b.empty()) {
    if (isDigit(a.front()) && isDigit(b.front())) {
      StringRef x = a.take_while(isDigit), y = b.take_while(isDigit);
      a = a.drop_front(x.size());
      b = b.drop_front(y.size());
      x = x.ltrim('0');
      y = y.ltrim('0');
      if (x.size() != y.size())
        return x.size() < y.size();
      if (x != y)
        return x < y;
      continue;
    }
    if (a.front() != b.front())
      return a.front() < b.front();
    a = a.drop_front();
    b = b.drop_front();
  }
  return a.empty() && b.empty() ? wholeA < wholeB : a.empty();
}

int64_t indexOfNonFinite(ArrayRef<double> values) {
  for (auto [i, value] : enumerate(values))
    if (!std::isfinite(static_cast<float>(value)))
      return static_cast<int64_t>(i);
  return -1;
}

TensorSource sourceOf(std::string name, ArrayRef<int64_t> shape,
                      const std::vector<double> &values) {
  TensorSource source;
  source.name = std::move(name);
  source.shape.assign(shape.begin(), shape.end());
  source.write = [&values](raw_ostream &os) {
    std::vector<char> bytes(values.size() * sizeof(float));
    writeDoubles(DType::F32, values, reinterpret_cast<uint8_t *>(bytes.data()));
    os.write(bytes.data(), bytes.size());
    return Error::success();
  };
  return source;
}

std::vector<double> valuesOf(const TensorView &view) {
  std::vector<double> values(view.elements());
  readDoubles(view.dtype, view.data, values);
  return values;
}

/// The tensors that a file holds for one parameter.
struct Parts {
  const TensorView *u = nullptr, *v = nullptr, *delta = nullptr;
};

/// Whether `factor` is a column (k, 1).
bool isColumn(const TensorView &factor, const char *suffix, StringRef name, Problems &problems) {
  if (factor.shape.size() == 2 && factor.shape[1] == 1)
    return true;
  problems.add("tensor " + quoted((name + suffix).str()) + ": found shape " +
               shapeText(factor.shape) + ", expected (k, 1): patches are of rank 1");
  return false;
}

std::optional<ParameterPatch> assemble(StringRef name, const Parts &parts, Problems &problems) {
  ParameterPatch patch;
  patch.parameter = name.str();
  if (parts.delta) {
    if (parts.u || parts.v) {
      problems.add("parameter " + quoted(name) + ": has both a delta and a rank1 patch");
      return std::nullopt;
    }
    patch.kind = ParameterPatch::Kind::Delta;
    patch.shape.assign(parts.delta->shape.begin(), parts.delta->shape.end());
    patch.delta = valuesOf(*parts.delta);
    return patch;
  }
  if (!parts.u || !parts.v) {
    const char *has = parts.u ? ".u" : ".v", *lacks = parts.u ? ".v" : ".u";
    problems.add("parameter " + quoted(name) + ": has " + quoted((name + has).str()) + " but not " +
                 quoted((name + lacks).str()));
    return std::nullopt;
  }
  bool uGood = isColumn(*parts.u, ".u", name, problems);
  if (!isColumn(*parts.v, ".v", name, problems) || !uGood)
    return std::nullopt;
  patch.kind = ParameterPatch::Kind::Rank1;
  patch.shape = {parts.u->shape[0], parts.v->shape[0]};
  patch.u = valuesOf(*parts.u);
  patch.v = valuesOf(*parts.v);
  return patch;
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

Error ctxc::writePatchFile(StringRef path, const Patch &patch, const PatchMetadata &metadata) {
  Problems problems(path.str() + ": ");
  std::map<std::string, std::string> strings = metadataStrings(metadata);
  parsePatchMetadata(strings, [&](const Twine &message) { problems.add(message); });
  if (Error e = joinErrors(checkPatch(patch), problems.take()))
    return e;
  strings["format"] = "ctxc-patch";
  std::vector<TensorSource> tensors;
  for (const ParameterPatch &p : patch.parameters) {
    if (p.kind == ParameterPatch::Kind::Delta) {
      tensors.push_back(sourceOf(p.parameter + ".delta", p.shape, p.delta));
      continue;
    }
    tensors.push_back(sourceOf(p.parameter + ".u", {p.shape[0], 1}, p.u));
    tensors.push_back(sourceOf(p.parameter + ".v", {p.shape[1], 1}, p.v));
  }
  return writeSafetensors(path, std::move(tensors), strings);
}

Expected<std::pair<Patch, PatchMetadata>> ctxc::readPatchFile(StringRef path) {
  Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  Problems problems(path.str() + ": ");
  Error notFinite = Error::success();
  PatchMetadata metadata =
      parsePatchMetadata((*file)->metadata(), [&](const Twine &message) { problems.add(message); });
  std::map<std::string, Parts> parameters;
  for (const TensorView &view : (*file)->tensors()) {
    auto [name, suffix] = StringRef(view.name).rsplit('.');
    const TensorView *Parts::*part = suffix == "u"       ? &Parts::u
                                     : suffix == "v"     ? &Parts::v
                                     : suffix == "delta" ? &Parts::delta
                                                         : nullptr;
    if (name.empty() || !part) {
      problems.add("tensor " + quoted(view.name) +
                   ": expected a parameter's name with .u, .v or .delta");
      continue;
    }
    if (view.dtype != DType::F32) {
      problems.add("tensor " + quoted(view.name) + ": found " + nameOf(view.dtype) +
                   ", expected F32");
      continue;
    }
    if (Error e = checkFinite(view))
      notFinite = joinErrors(std::move(notFinite), std::move(e));
    parameters[name.str()].*part = &view;
  }
  Patch patch;
  for (const auto &[name, parts] : parameters)
    if (std::optional<ParameterPatch> p = assemble(name, parts, problems))
      patch.parameters.push_back(std::move(*p));
  if (Error e = joinErrors(problems.take(), std::move(notFinite)))
    return std::move(e);
  llvm::sort(patch.parameters, [](const ParameterPatch &a, const ParameterPatch &b) {
    return naturalLess(a.parameter, b.parameter);
  });
  return std::make_pair(std::move(patch), std::move(metadata));
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
