#include "NamedChanges.h"
#include "Lora.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;

static constexpr StringLiteral formatName = "ctxc-adapter", formatVersion = "1";

void ctxc::addNamedChanges(const Adapter &adapter, std::vector<TensorSource> &tensors,
                           std::map<std::string, std::string> &metadata) {
  for (const MatrixChange &change : adapter.matrices) {
    tensors.push_back(floats(change.parameter + ".u", {change.rows, change.rank}, change.left));
    tensors.push_back(floats(change.parameter + ".v", {change.columns, change.rank},
                             transposed(change.right, change.rank)));
  }
  for (const VectorChange &change : adapter.vectors)
    tensors.push_back(
        floats(change.parameter + ".delta", {int64_t(change.delta.size())}, change.delta));
  metadata["format"] = formatName;
  metadata["format_version"] = formatVersion;
}

namespace {

class Reader {
public:
  Reader(StringRef directory, const SafetensorsFile &file, const Checkpoint &checkpoint)
      : directory(directory), file(file), checkpoint(checkpoint) {}
  Error read(Adapter &adapter) const;

private:
  Error fail(const Twine &message) const { return makeError(directory + ": " + message); }
  Error checkShape(StringRef name, ArrayRef<int64_t> shape) const;
  Expected<std::vector<float>> numbersOf(const TensorView &tensor) const;
  Error readMatrix(StringRef name, const TensorView &u, Adapter &adapter) const;

  StringRef directory;
  const SafetensorsFile &file;
  const Checkpoint &checkpoint;
};

/// Whether the parameter `name` has entries of `shape`.
Error Reader::checkShape(StringRef name, ArrayRef<int64_t> shape) const {
  auto [stored, slice] = findStored(checkpoint, name);
  if (!stored || (slice && (stored->shape.size() != 3 || *slice >= stored->shape.front())))
    return fail("changes the parameter " + quoted(name) + ", which " + checkpoint.directory() +
                " does not have");
  ArrayRef<int64_t> own = ArrayRef<int64_t>(stored->shape).drop_front(slice ? 1 : 0);
  if (isSameShape(own, shape))
    return Error::success();
  return fail("parameter " + quoted(name) + ": the change is of shape " + shapeText(shape) +
              ", expected " + shapeText(own));
}

Expected<std::vector<float>> Reader::numbersOf(const TensorView &tensor) const {
  if (tensor.dtype != DType::F32)
    return fail("tensor " + quoted(tensor.name) + ": found " + nameOf(tensor.dtype) +
                ", expected F32");
  if (Error e = checkFinite(tensor))
    return std::move(e);
  std::vector<float> numbers(tensor.elements());
  readFloats(tensor.dtype, tensor.stored(), numbers);
  return numbers;
}

Error Reader::readMatrix(StringRef name, const TensorView &u, Adapter &adapter) const {
  const TensorView *v = file.find((name + ".v").str());
  if (!v || u.shape.size() != 2 || v->shape.size() != 2 || u.shape[1] != v->shape[1] ||
      u.elements() == 0 || v->elements() == 0)
    return fail("parameter " + quoted(name) +
                ": expected a pair of factors .u (rows, rank) and .v (columns, rank)");
  if (Error e = checkShape(name, {u.shape[0], v->shape[0]}))
    return e;
  auto left = numbersOf(u), right = numbersOf(*v);
  if (!left || !right)
    return joinErrors(left.takeError(), right.takeError());
  adapter.matrices.push_back({name.str(), u.shape[0], v->shape[0], u.shape[1], std::move(*left),
                              transposed(*right, v->shape[0])});
  return Error::success();
}

Error Reader::read(Adapter &adapter) const {
  auto said = [&](const char *key) {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? StringRef() : StringRef(found->second);
  };
  if (said("format") != formatName || said("format_version") != formatVersion)
    return fail("adapter_model.safetensors: found the format " + quoted(said("format")) +
                " of version " + quoted(said("format_version")) + ", expected " +
                quoted(formatName) + " of version " + formatVersion +
                ", as an adapter that was distilled for " + checkpoint.directory() + " has");
  for (const TensorView &tensor : file.tensors()) {
    auto [name, part] = StringRef(tensor.name).rsplit('.');
    if (part == "u") {
      if (Error e = readMatrix(name, tensor, adapter))
        return e;
    } else if (part == "delta") {
      auto delta = numbersOf(tensor);
      if (!delta)
        return delta.takeError();
      if (Error e = checkShape(name, tensor.shape))
        return e;
      adapter.vectors.push_back({name.str(), std::move(*delta)});
    } else if (part != "v" || !file.find((name + ".u").str())) {
      return fail("tensor " + quoted(tensor.name) +
                  ": expected a parameter's name with .u and .v, or with .delta");
    }
  }
  return Error::success();
}

} // namespace

Error ctxc::readNamedChanges(StringRef directory, const SafetensorsFile &file,
                             const Checkpoint &checkpoint, Adapter &adapter) {
  return Reader(directory, file, checkpoint).read(adapter);
}
