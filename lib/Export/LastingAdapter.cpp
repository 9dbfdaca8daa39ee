#include "ctxc/Export/LastingAdapter.h"
#include "Lora.h"
#include "PeftConfig.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

static constexpr StringLiteral peftPrefix = "base_model.model.";

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static TensorSource sourceOf(std::string name, SmallVector<int64_t, 4> shape,
                             std::vector<float> values) {
  return {std::move(name), DType::F32, std::move(shape), [values](raw_ostream &os) {
            os.write(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
            return Error::success();
          }};
}

/// The parameter's module; an error where it is the weight of none, or not the checkpoint's.
static Expected<std::string> moduleFor(StringRef parameter, const Checkpoint &checkpoint) {
  if (!checkpoint.find(parameter))
    return makeError(parameter + ": is no tensor of " + checkpoint.directory());
  StringRef module = parameter;
  if (!module.consume_back(".weight"))
    return makeError("parameter " + quoted(parameter) + ": is not the weight of a module");
  return moduleOf(module);
}

static Error addMatrix(const MatrixChange &change, const Checkpoint &checkpoint, PeftConfig &config,
                       std::vector<TensorSource> &tensors) {
  auto module = moduleFor(change.parameter, checkpoint);
  if (!module)
    return module.takeError();
  config.inFirst |= change.inFirst;
  config.modules.push_back({*module, change.rank});
  auto [a, b] = loraFactors(change);
  int64_t in = a.size() / change.rank, out = b.size() / change.rank;
  std::string name = (peftPrefix + *module).str();
  tensors.push_back(sourceOf(name + ".lora_A.weight", {change.rank, in}, std::move(a)));
  tensors.push_back(sourceOf(name + ".lora_B.weight", {out, change.rank}, std::move(b)));
  return Error::success();
}

static Error addVector(const VectorChange &change, const Checkpoint &checkpoint, PeftConfig &config,
                       std::vector<TensorSource> &tensors) {
  auto module = moduleFor(change.parameter, checkpoint);
  if (!module)
    return module.takeError();
  const TensorView &stored = *checkpoint.find(change.parameter);
  std::vector<float> numbers(stored.elements());
  if (numbers.size() != change.delta.size())
    return makeError(change.parameter + ": the change has " + Twine(change.delta.size()) +
                     " numbers, expected " + Twine(numbers.size()));
  readFloats(stored.dtype, stored.stored(), numbers);
  for (auto [number, delta] : zip(numbers, change.delta))
    number += delta;
  config.replaced.push_back(*module);
  tensors.push_back(
      sourceOf((peftPrefix + *module + ".weight").str(), stored.shape, std::move(numbers)));
  return Error::success();
}

static Error writeCache(StringRef path, ArrayRef<KeysAndValues> cache,
                        const std::map<std::string, std::string> &strings) {
  std::vector<TensorSource> tensors;
  for (auto [i, layer] : enumerate(cache)) {
    std::string name = ("layers." + Twine(i)).str();
    tensors.push_back(
        sourceOf(name + ".keys", {layer.heads, layer.tokens, layer.keyWidth}, layer.keys));
    tensors.push_back(
        sourceOf(name + ".values", {layer.heads, layer.tokens, layer.valueWidth}, layer.values));
  }
  return writeSafetensors(path, std::move(tensors), strings);
}

Error ctxc::writeLastingAdapter(StringRef outDir, const Adapter &adapter,
                                const Checkpoint &checkpoint, ArrayRef<AdapterFile> files,
                                ArrayRef<KeysAndValues> cache) {
  if (adapter.matrices.empty())
    return makeError("the adapter changes no matrix");
  PeftConfig config;
  std::vector<TensorSource> tensors;
  for (const MatrixChange &change : adapter.matrices)
    if (Error e = addMatrix(change, checkpoint, config, tensors))
      return e;
  for (const VectorChange &change : adapter.vectors)
    if (Error e = addVector(change, checkpoint, config, tensors))
      return e;
  AdapterModel model;
  model.directory = checkpoint.directory().str();
  model.modelType = checkpoint.config().getString("model_type").value_or("").str();
  std::map<std::string, std::string> strings = frontStrings(adapter);
  strings["format"] = "pt";
  return writeNewDirectory(outDir, "an adapter directory", [&](StringRef directory) -> Error {
    if (Error e = writeSafetensors(pathIn(directory, "adapter_model.safetensors"),
                                   std::move(tensors), strings))
      return e;
    for (const AdapterFile &file : files)
      if (Error e = writeFileAtomically(pathIn(directory, file.name), [&](raw_pwrite_stream &os) {
            os << file.content;
            return Error::success();
          }))
        return e;
    if (!cache.empty())
      if (Error e = writeCache(pathIn(directory, "prefix_cache.safetensors"), cache, strings))
        return e;
    return writePeftConfig(pathIn(directory, "adapter_config.json"), config, model);
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

class Reader {
public:
  Reader(StringRef directory, const Checkpoint &checkpoint)
      : directory(directory), checkpoint(checkpoint) {}
  Expected<Adapter> read(ArrayRef<int64_t> prefix);

private:
  Error readConfig();
  Expected<std::vector<int64_t>> readList(StringRef name, StringRef text) const;
  Error readFront(Adapter &adapter) const;
  Error readMatrix(StringRef module, const TensorView &a, Adapter &adapter);
  Error readVector(StringRef module, const TensorView &tensor, Adapter &adapter) const;
  Expected<const TensorView *> storedOf(StringRef module) const;
  Expected<std::vector<float>> numbersOf(const TensorView &tensor) const;
  double numberFor(StringRef pattern, StringRef module, double otherwise) const;
  Error fail(const Twine &message) const { return makeError(directory + ": " + message); }

  std::string directory;
  const Checkpoint &checkpoint;
  json::Object config;
  std::unique_ptr<SafetensorsFile> file;
  bool inFirst = false;
};

Error Reader::readConfig() {
  std::string path = pathIn(directory, "adapter_config.json");
  auto text = readSmallFile(path, 1 << 24);
  if (!text)
    return text.takeError();
  auto value = parseStrictJson(*text, path);
  if (!value)
    return value.takeError();
  if (!value->getAsObject())
    return makeError(path + ": expected an object");
  config = std::move(*value->getAsObject());
  if (config.getString("peft_type").value_or("") != "LORA")
    return makeError(path + ": found an adapter of another kind, expected peft_type LORA");
  if (config.getBoolean("use_dora").value_or(false))
    return makeError(path + ": use_dora is set; its scale of columns is not known here");
  if (config.getString("bias").value_or("none") != "none")
    return makeError(path + ": changes biases, which are not known here; expected bias none");
  inFirst = config.getBoolean("fan_in_fan_out").value_or(false);
  return Error::success();
}

/// The numbers of the metadata's list `name`, from 0 on.
Expected<std::vector<int64_t>> Reader::readList(StringRef name, StringRef text) const {
  std::vector<int64_t> numbers;
  SmallVector<StringRef> words;
  text.split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    int64_t number;
    if (word.getAsInteger(10, number) || number < 0)
      return fail("adapter_model.safetensors: the " + name + " has " + quoted(word) +
                  ", expected " + (name == "prefix" ? "token ids" : "places") +
                  " separated by commas");
    numbers.push_back(number);
  }
  return numbers;
}

/// What stands in front of texts, if the metadata says it.
Error Reader::readFront(Adapter &adapter) const {
  const std::map<std::string, std::string> &metadata = file->metadata();
  for (auto [name, list] : {std::pair("prefix", &adapter.prefix), std::pair("seen", &adapter.seen)})
    if (auto found = metadata.find(name); found != metadata.end())
      if (Error e = readList(name, found->second).moveInto(*list))
        return e;
  for (size_t i = 0; i < adapter.seen.size(); ++i)
    if (adapter.seen[i] >= int64_t(adapter.prefix.size()) ||
        (i > 0 && adapter.seen[i] <= adapter.seen[i - 1]))
      return fail("adapter_model.safetensors: found " + Twine(adapter.seen[i]) +
                  " among the places that are seen, expected ascending places in the prefix of " +
                  Twine(adapter.prefix.size()) + " tokens");
  return Error::success();
}

static bool areFinite(ArrayRef<float> numbers) {
  return all_of(numbers, [](float x) { return std::isfinite(x); });
}

/// The checkpoint's tensor that is the weight of `module`, as transformers names it.
Expected<const TensorView *> Reader::storedOf(StringRef module) const {
  for (const TensorView &tensor : checkpoint.tensors()) {
    StringRef name = tensor.name;
    if (name.consume_back(".weight") && moduleOf(name) == module)
      return &tensor;
  }
  return fail("changes the module " + quoted(module) + ", which " + checkpoint.directory() +
              " does not have");
}

Expected<std::vector<float>> Reader::numbersOf(const TensorView &tensor) const {
  if (!isFloating(tensor.dtype))
    return fail("tensor " + quoted(tensor.name) + ": expected numbers of a floating type");
  if (Error e = checkFinite(tensor))
    return std::move(e);
  std::vector<float> numbers(tensor.elements());
  readFloats(tensor.dtype, tensor.stored(), numbers);
  if (!areFinite(numbers)) // of float64
    return fail("tensor " + quoted(tensor.name) + ": has numbers that float32 does not hold");
  return numbers;
}

/// The number that rank_pattern or alpha_pattern has for a module.
double Reader::numberFor(StringRef pattern, StringRef module, double otherwise) const {
  if (const json::Object *entries = config.getObject(pattern))
    for (const auto &[key, value] : *entries) {
      StringRef name = key;
      if (module == name || module.ends_with(("." + name).str()))
        return value.getAsNumber().value_or(otherwise);
    }
  return otherwise;
}

Error Reader::readMatrix(StringRef module, const TensorView &a, Adapter &adapter) {
  const TensorView *b = file->find((peftPrefix + module + ".lora_B.weight").str());
  auto stored = storedOf(module);
  if (!stored)
    return stored.takeError();
  if (!b || a.shape.size() != 2 || b->shape.size() != 2 || a.shape[0] != b->shape[1] ||
      a.elements() == 0 || b->elements() == 0)
    return fail("module " + quoted(module) +
                ": expected a pair of factors lora_A (rank, in) and "
                "lora_B (out, rank)");
  auto right = numbersOf(a), left = numbersOf(*b);
  if (!right || !left)
    return joinErrors(right.takeError(), left.takeError());
  MatrixChange change;
  change.parameter = (*stored)->name;
  change.rank = a.shape[0];
  change.rows = b->shape[0];
  change.columns = a.shape[1];
  change.inFirst = inFirst;
  double rank = numberFor("rank_pattern", module, config.getNumber("r").value_or(change.rank));
  double alpha = numberFor("alpha_pattern", module, config.getNumber("lora_alpha").value_or(rank));
  if (!(rank > 0) || !std::isfinite(alpha))
    return fail("adapter_config.json: the rank of " + quoted(module) + " is not positive");
  bool isRootScaled = config.getBoolean("use_rslora").value_or(false);
  for (float &x : *left)
    x *= alpha / (isRootScaled ? std::sqrt(rank) : rank);
  if (!areFinite(*left))
    return fail("adapter_config.json: alpha and rank of " + quoted(module) +
                " make its factors infinite");
  if (inFirst) {
    std::vector<float> first = transposed(*right, change.rank);
    *right = transposed(*left, change.rows);
    *left = std::move(first);
    std::swap(change.rows, change.columns);
  }
  if ((*stored)->shape != SmallVector<int64_t, 4>{change.rows, change.columns})
    return fail("module " + quoted(module) + ": the change is of shape [" + Twine(change.rows) +
                ", " + Twine(change.columns) + "], expected " + shapeText((*stored)->shape));
  change.left = std::move(*left);
  change.right = std::move(*right);
  adapter.matrices.push_back(std::move(change));
  return Error::success();
}

Error Reader::readVector(StringRef module, const TensorView &tensor, Adapter &adapter) const {
  auto stored = storedOf(module);
  if (!stored)
    return stored.takeError();
  if ((*stored)->shape != tensor.shape || tensor.shape.size() != 1)
    return fail("module " + quoted(module) + ": is replaced by a weight of shape " +
                shapeText(tensor.shape) + ", expected " + shapeText((*stored)->shape) +
                (tensor.shape.size() == 1 ? ""
                                          : " of one dimension: other modules are not known "
                                            "here as wholes"));
  auto delta = numbersOf(tensor), base = numbersOf(**stored);
  if (!delta || !base)
    return joinErrors(delta.takeError(), base.takeError());
  for (auto [number, from] : zip(*delta, *base))
    if (number -= from; !std::isfinite(number))
      return fail("module " + quoted(module) + ": a weight is too far from the model's own");
  adapter.vectors.push_back({(*stored)->name, std::move(*delta)});
  return Error::success();
}

Expected<Adapter> Reader::read(ArrayRef<int64_t> prefix) {
  if (Error e = readConfig())
    return std::move(e);
  auto opened = SafetensorsFile::open(pathIn(directory, "adapter_model.safetensors"));
  if (!opened)
    return opened.takeError();
  file = std::move(*opened);
  Adapter adapter;
  adapter.prefix = prefix.vec();
  if (Error e = readFront(adapter))
    return std::move(e);
  for (const TensorView &tensor : file->tensors()) {
    StringRef name = tensor.name;
    if (!name.consume_front(peftPrefix))
      return fail("tensor " + quoted(tensor.name) + ": expected a name that begins with " +
                  peftPrefix);
    if (name.consume_back(".lora_A.weight")) {
      if (Error e = readMatrix(name, tensor, adapter))
        return std::move(e);
    } else if (name.consume_back(".lora_B.weight")) {
      if (!file->find((peftPrefix + name + ".lora_A.weight").str()))
        return fail("module " + quoted(name) + ": has lora_B and no lora_A");
    } else if (name.consume_back(".weight")) {
      if (Error e = readVector(name, tensor, adapter))
        return std::move(e);
    } else {
      return fail("tensor " + quoted(tensor.name) +
                  ": is not known here; expected lora_A, lora_B "
                  "or a norm's weight");
    }
  }
  return adapter;
}

} // namespace

Expected<Adapter> ctxc::readLastingAdapter(StringRef directory, const Checkpoint &checkpoint,
                                           ArrayRef<int64_t> prefix) {
  return Reader(directory, checkpoint).read(prefix);
}
