#include "ctxc/Export/ApplyAdapter.h"
#include "AdapterNote.h"
#include "ChangedCheckpoint.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace ctxc;

static constexpr uint64_t smallFile = 1 << 24;

bool ctxc::isAdapterDirectory(StringRef directory) {
  return sys::fs::exists(pathIn(directory, "adapter_config.json"));
}

static Error readCard(StringRef path, std::optional<json::Object> &card) {
  if (!sys::fs::exists(path))
    return Error::success();
  auto text = readSmallFile(path, smallFile);
  if (!text)
    return text.takeError();
  auto value = parseStrictJson(*text, path);
  if (!value)
    return value.takeError();
  json::Object *object = value->getAsObject();
  if (object && object->getString("format") == StringRef("ctxc-card"))
    card = std::move(*object);
  return Error::success();
}

Expected<AdapterOrigin> ctxc::readAdapterOrigin(StringRef directory) {
  std::string path = pathIn(directory, "adapter_model.safetensors");
  auto file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  if ((*file)->metadata().count("position"))
    return makeError(path + ": is a patch of one token in PEFT's format; expected an adapter, or "
                            "the patch file that `ctxc patch` writes");
  AdapterOrigin origin;
  origin.saysPrefix = (*file)->metadata().count("prefix");
  SHA256 sum;
  auto bytes = readSmallFile(path, uint64_t(1) << 40);
  if (!bytes)
    return bytes.takeError();
  sum.update(*bytes);
  origin.sha256 = toHex(sum.final(), /*LowerCase=*/true);
  if (Error e = readCard(pathIn(directory, "card.json"), origin.card))
    return std::move(e);
  std::string prefix = pathIn(directory, "prefix.txt");
  if (sys::fs::exists(prefix))
    if (Error e = readSmallFile(prefix, smallFile).moveInto(origin.prefixText))
      return std::move(e);
  return std::move(origin);
}

/// Adds what is done to one stored tensor.
static Error addChange(const Checkpoint &checkpoint, StringRef name, ArrayRef<int64_t> shape,
                       std::function<double(uint64_t)> at, CheckpointChange &change) {
  const TensorView *stored = checkpoint.find(name);
  if (!stored)
    return makeError(name + ": is no tensor of " + checkpoint.directory());
  if (!isFloating(stored->dtype) || ArrayRef<int64_t>(stored->shape) != shape)
    return makeError(name + ": the adapter's change is of shape " + shapeText(shape) +
                     ", expected " + shapeText(stored->shape) + ", as the tensor of type " +
                     nameOf(stored->dtype) + " has");
  if (!change.tensors.try_emplace(stored->name, std::move(at)).second)
    return makeError(name + ": the adapter changes it twice");
  return Error::success();
}

/// The changes of a bank's entries.
using Slices = std::map<int64_t, const MatrixChange *>;

static double productAt(const MatrixChange &change, uint64_t index) {
  const int64_t row = index / change.columns, column = index % change.columns;
  double sum = 0;
  for (int64_t k = 0; k < change.rank; ++k)
    sum += double(change.left[row * change.rank + k]) *
           double(change.right[k * change.columns + column]);
  return sum;
}

/// Adds what is done to a tensor that has all experts of a layer.
static Error addBank(const Checkpoint &checkpoint, StringRef name, const Slices &slices,
                     CheckpointChange &change) {
  const MatrixChange &any = *slices.begin()->second;
  const TensorView *stored = checkpoint.find(name);
  const int64_t count = stored && stored->shape.size() == 3 ? stored->shape[0] : 0;
  const uint64_t size = any.rows * any.columns;
  auto at = [slices, size](uint64_t index) {
    auto slice = slices.find(index / size);
    return slice == slices.end() ? 0 : productAt(*slice->second, index % size);
  };
  return addChange(checkpoint, name, {count, any.rows, any.columns}, at, change);
}

static Expected<CheckpointChange> changeOf(const Checkpoint &checkpoint, const Adapter &adapter) {
  CheckpointChange change;
  std::map<StringRef, Slices> banks;
  for (const MatrixChange &matrix : adapter.matrices) {
    if (int64_t(matrix.left.size()) != matrix.rows * matrix.rank ||
        int64_t(matrix.right.size()) != matrix.rank * matrix.columns)
      return makeError(matrix.parameter + ": the adapter's factors do not have the sizes of its "
                                          "shape and rank");
    if (auto slice = splitSliceName(matrix.parameter)) {
      banks[slice->first][slice->second] = &matrix;
      continue;
    }
    auto at = [&matrix](uint64_t index) { return productAt(matrix, index); };
    if (Error e =
            addChange(checkpoint, matrix.parameter, {matrix.rows, matrix.columns}, at, change))
      return std::move(e);
  }
  for (const auto &[name, slices] : banks)
    if (Error e = addBank(checkpoint, name, slices, change))
      return std::move(e);
  for (const VectorChange &vector : adapter.vectors) {
    auto at = [&vector](uint64_t index) { return double(vector.delta[index]); };
    if (Error e =
            addChange(checkpoint, vector.parameter, {int64_t(vector.delta.size())}, at, change))
      return std::move(e);
  }
  return std::move(change);
}

Expected<ApplyReport> ctxc::applyAdapter(const Checkpoint &checkpoint, const Adapter &adapter,
                                         const AdapterOrigin &origin, StringRef outDir,
                                         std::optional<DType> storage) {
  if (!adapter.entries.empty())
    return makeError(
        "virtual entries stand in the cache, and are in no weight; give the adapter to "
        "PEFT, or its prefix_cache.safetensors to the program that runs the model");
  if (Error e = checkChangeable(checkpoint, storage, "an adapter",
                                "PEFT, or llama.cpp with its GGUF file, adds beside them"))
    return std::move(e);
  if (!adapter.seen.empty())
    return makeError("the adapter goes with keys and values that the unchanged model has for its "
                     "context, which a changed checkpoint no longer computes; use it beside the "
                     "model");
  auto change = changeOf(checkpoint, adapter);
  if (!change)
    return change.takeError();
  auto hash = checkpoint.hash();
  if (!hash)
    return hash.takeError();
  change->metadata = adapterMetadata(adapter, origin, *hash);
  change->readme = [&](double relativeRounding, bool hasOriginal) {
    return adapterReadme(adapter, origin, *hash, relativeRounding, hasOriginal);
  };
  if (!origin.prefixText.empty())
    change->files["prefix.txt"] = origin.prefixText;
  return writeChanged(checkpoint, *change, outDir, storage);
}
