// Reading such a directory, or one that PEFT wrote.
#include "ExpertLora.h"
#include "Lora.h"
#include "NamedChanges.h"
#include "PeftConfig.h"
#include "PeftSettings.h"
#include "PrefixAdapter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <set>

using namespace llvm;
using namespace ctxc;

namespace {

class Reader {
public:
  Reader(StringRef directory, const Checkpoint &checkpoint)
      : directory(directory), checkpoint(checkpoint) {}
  Expected<Adapter> read(ArrayRef<int64_t> prefix);

private:
  std::string nameOf(StringRef module) const {
    return moduleOf(module, checkpoint.config().getString("model_type").value_or(""));
  }
  Error readConfig();
  Expected<std::vector<int64_t>> readList(StringRef name, StringRef text) const;
  Error readFront(Adapter &adapter) const;
  Error readTensor(StringRef name, const TensorView &tensor, Adapter &adapter);
  Error readMatrix(StringRef module, const TensorView &a, Adapter &adapter);
  std::string parameterOf(StringRef module) const;
  Error checkTargeted(StringRef module) const;
  Error checkTargetsAreMatrices() const;
  Error checkSaved() const;
  bool storesInFirst() const;
  Error readExperts(StringRef module, StringRef parameter, const TensorView &a, Adapter &adapter);
  Error readVector(StringRef module, const TensorView &tensor, Adapter &adapter) const;
  Expected<const TensorView *> storedOf(StringRef module) const;
  Expected<std::vector<float>> numbersOf(const TensorView &tensor) const;
  Error multiply(std::vector<float> &numbers, double factor, StringRef name) const;
  Error fail(const Twine &message) const { return makeError(directory + ": " + message); }

  std::string directory;
  const Checkpoint &checkpoint;
  std::optional<PeftSettings> settings;
  std::optional<PrefixSettings> prefixSettings; ///< of virtual entries of the cache
  std::unique_ptr<SafetensorsFile> file;
};

Error Reader::readConfig() {
  std::string path = pathIn(directory, "adapter_config.json");
  if (namesParametersAlone(checkpoint)) {
    if (!sys::fs::exists(path))
      return Error::success();
    return fail("adapter_config.json: names modules of a model of transformers, and " +
                checkpoint.directory() +
                " has parameters alone; expected an adapter that was distilled for it");
  }
  auto text = readSmallFile(path, 1 << 24);
  if (!text)
    return text.takeError();
  if (Error e = PrefixSettings::read(*text, path).moveInto(prefixSettings))
    return e;
  if (prefixSettings)
    return Error::success();
  return PeftSettings::read(std::move(*text), path).moveInto(settings);
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
    if (name.consume_back(".weight") && nameOf(name) == module)
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

Error Reader::multiply(std::vector<float> &numbers, double factor, StringRef name) const {
  for (float &x : numbers)
    x *= factor;
  if (areFinite(numbers))
    return Error::success();
  return fail("adapter_config.json: alpha and rank of " + quoted(name) +
              " make its factors infinite");
}

/// The parameter of `module` with a matrix for each expert that target_parameters names, by its
/// whole name or the end of it; empty if there is none.
std::string Reader::parameterOf(StringRef module) const {
  for (StringRef name : settings->parameters()) {
    StringRef parameter = name.substr(name.rfind('.') + 1);
    if (parameter != "weight" && settings->takesParameter((module + "." + parameter).str()) &&
        (name.contains('.') || findExperts(module, parameter, checkpoint)))
      return parameter.str();
  }
  return "";
}

/// Whether adapter_config.json lets PEFT change the weight of `module`.
Error Reader::checkTargeted(StringRef module) const {
  const bool asParameter = settings->takesParameter((module + ".weight").str());
  Expected<StringRef> key = settings->excludedBy(module);
  if (!key)
    return key.takeError();
  if (asParameter && key->empty())
    return fail(
        "adapter_config.json: target_modules and target_parameters both name the weight of " +
        quoted(module) + "; expected one of them to");
  if (asParameter || key->empty())
    return Error::success();
  return fail("adapter_config.json: key " + quoted(*key) + " keeps PEFT from changing the module " +
              quoted(module) +
              ", of which adapter_model.safetensors has factors; expected the two "
              "files to be of the same modules");
}

/// Whether target_modules names only matrices, as far as the checkpoint's tensors tell: PEFT
/// changes nothing else.
Error Reader::checkTargetsAreMatrices() const {
  std::set<std::string> others;
  for (const TensorView &tensor : checkpoint.tensors()) {
    std::string name = nameOf(StringRef(tensor.name).rsplit('.').first);
    StringRef around = StringRef(name).rsplit('.').first;
    if (tensor.shape.size() == 1 && StringRef(tensor.name).ends_with(".weight"))
      others.insert(name);
    for (; around.contains('.'); around = around.rsplit('.').first)
      others.insert(around.str());
  }
  for (const std::string &module : others) {
    Expected<StringRef> key =
        settings->takesAll() ? StringRef("target_modules") : settings->excludedBy(module);
    if (!key)
      return key.takeError();
    if (key->empty())
      return fail("adapter_config.json: key 'target_modules' names " + quoted(module) +
                  ", which is no matrix, and PEFT changes nothing else");
  }
  return Error::success();
}

/// Whether the matrices' classes in transformers are Conv1D, by which PEFT goes whatever
/// fan_in_fan_out says.
bool Reader::storesInFirst() const {
  StringRef type = checkpoint.config().getString("model_type").value_or("");
  return is_contained({"gpt2", "gpt-sw3", "openai-gpt"}, type);
}

/// Whether every module that modules_to_save names is in the file.
Error Reader::checkSaved() const {
  for (const TensorView &tensor : checkpoint.tensors()) {
    StringRef name = tensor.name;
    if (!name.consume_back(".weight") || !settings->saves(nameOf(name)))
      continue;
    std::string whole = (peftPrefix + nameOf(name) + ".weight").str();
    if (!file->find(whole))
      return fail("adapter_config.json: key 'modules_to_save' names the module " +
                  quoted(nameOf(name)) + "; expected adapter_model.safetensors to have " +
                  quoted(whole));
  }
  return Error::success();
}

Error Reader::readExperts(StringRef module, StringRef parameter, const TensorView &a,
                          Adapter &adapter) {
  const TensorView *b = file->find((peftPrefix + module + ".lora_B.weight").str());
  auto stored = findExperts(module, parameter, checkpoint);
  std::string name = (module + "." + parameter).str();
  if (!stored)
    return fail("changes the experts " + quoted(name) + ", which " + checkpoint.directory() +
                " does not have");
  if (!b || a.shape.size() != 2 || b->shape.size() != 2 || a.shape[0] != b->shape[1] ||
      a.elements() == 0 || b->elements() == 0 || a.shape[0] % stored->count != 0)
    return fail("module " + quoted(module) + ": expected a pair of factors lora_A (rank · " +
                Twine(stored->count) + ", in) and lora_B (out, rank · " + Twine(stored->count) +
                ")");
  ExpertLora lora;
  lora.place.bank = stored->bank;
  lora.experts = stored->count;
  lora.rank = a.shape[0] / stored->count;
  lora.in = a.shape[1];
  lora.out = b->shape[0];
  // As transformers' classes have their experts; files store them as these do.
  const bool isTurned = checkpoint.config().getString("model_type") == StringRef("gpt_oss");
  auto shape = isTurned ? SmallVector<int64_t, 4>{lora.in, lora.out}
                        : SmallVector<int64_t, 4>{lora.out, lora.in};
  if (stored->shape != shape)
    return fail("module " + quoted(module) + ": the change of an expert is of shape " +
                shapeText(shape) + ", expected " + shapeText(stored->shape));
  auto right = numbersOf(a), left = numbersOf(*b);
  if (!right || !left)
    return joinErrors(right.takeError(), left.takeError());
  Expected<double> factor = settings->factorOf(name, lora.rank);
  if (!factor)
    return factor.takeError();
  if (Error e = multiply(*left, *factor, module))
    return e;
  lora.a = std::move(*right);
  lora.b.resize(left->size());
  for (int64_t expert = 0; expert < lora.experts; ++expert)
    for (int64_t i = 0; i < lora.out * lora.rank; ++i)
      lora.b[expert * lora.out * lora.rank + i] = (*left)[i * lora.experts + expert];
  append_range(adapter.matrices, expertChanges(lora, isTurned));
  return Error::success();
}

Error Reader::readMatrix(StringRef module, const TensorView &a, Adapter &adapter) {
  const TensorView *b = file->find((peftPrefix + module + ".lora_B.weight").str());
  if (Error e = checkTargeted(module))
    return e;
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
  change.inFirst = storesInFirst();
  const std::string weight = (module + ".weight").str();
  Expected<double> factor = settings->factorOf(
      settings->takesParameter(weight) ? StringRef(weight) : module, change.rank);
  if (!factor)
    return factor.takeError();
  if (Error e = multiply(*left, *factor, module))
    return e;
  if (change.inFirst) {
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
  if (!settings->saves(module))
    return fail("adapter_config.json: key 'modules_to_save' does not name the module " +
                quoted(module) + ", whose whole weight is in adapter_model.safetensors");
  if (tensor.shape.size() != 1)
    return fail("adapter_config.json: key 'modules_to_save' names the module " + quoted(module) +
                ", whose weight is of shape " + shapeText(tensor.shape) +
                "; norms alone are read as wholes");
  auto stored = storedOf(module);
  if (!stored)
    return stored.takeError();
  if ((*stored)->shape != tensor.shape)
    return fail("module " + quoted(module) + ": is replaced by a weight of shape " +
                shapeText(tensor.shape) + ", expected " + shapeText((*stored)->shape));
  auto delta = numbersOf(tensor), base = numbersOf(**stored);
  if (!delta || !base)
    return joinErrors(delta.takeError(), base.takeError());
  for (auto [number, from] : zip(*delta, *base))
    if (number -= from; !std::isfinite(number))
      return fail("module " + quoted(module) + ": a weight is too far from the model's own");
  adapter.vectors.push_back({(*stored)->name, std::move(*delta)});
  return Error::success();
}

/// One of the file, named `name` behind PEFT's prefix.
Error Reader::readTensor(StringRef name, const TensorView &tensor, Adapter &adapter) {
  if (name.consume_back(".lora_A.weight")) {
    std::string parameter = parameterOf(name);
    return parameter.empty() ? readMatrix(name, tensor, adapter)
                             : readExperts(name, parameter, tensor, adapter);
  }
  if (name.consume_back(".lora_B.weight"))
    return file->find((peftPrefix + name + ".lora_A.weight").str())
               ? Error::success()
               : fail("module " + quoted(name) + ": has lora_B and no lora_A");
  if (name.consume_back(".base_layer.weight") || name.contains(".lora_embedding_"))
    return fail("tensor " + quoted(tensor.name) +
                ": adapter_config.json's target_modules names an embedding or the head, which are "
                "not known here; expected matrices of layers");
  if (name.contains(".lora_"))
    return fail("tensor " + quoted(tensor.name) +
                ": is not known here; expected NAME.lora_A.weight and NAME.lora_B.weight, as PEFT "
                "saves them");
  if (name.consume_back(".weight"))
    return readVector(name, tensor, adapter);
  return fail("tensor " + quoted(tensor.name) +
              ": is not known here; expected factors, or a norm's weight");
}

Expected<Adapter> Reader::read(ArrayRef<int64_t> prefix) {
  if (Error e = readConfig())
    return std::move(e);
  auto opened = SafetensorsFile::open(pathIn(directory, "adapter_model.safetensors"));
  if (!opened)
    return opened.takeError();
  file = std::move(*opened);
  Adapter adapter;
  if (prefixSettings) {
    if (Error e = readPrefix(directory, *prefixSettings, *file).moveInto(adapter.entries))
      return std::move(e);
    return adapter;
  }
  adapter.prefix = prefix.vec();
  if (Error e = readFront(adapter))
    return std::move(e);
  if (!settings) {
    if (Error e = readNamedChanges(directory, *file, checkpoint, adapter))
      return std::move(e);
    return adapter;
  }
  for (const TensorView &tensor : file->tensors()) {
    StringRef name = tensor.name;
    if (!name.consume_front(peftPrefix))
      return fail("tensor " + quoted(tensor.name) + ": expected a name that begins with " +
                  peftPrefix);
    if (Error e = readTensor(name, tensor, adapter))
      return std::move(e);
  }
  if (Error e = joinErrors(checkTargetsAreMatrices(), checkSaved()))
    return std::move(e);
  return adapter;
}

} // namespace

Expected<Adapter> ctxc::readLastingAdapter(StringRef directory, const Checkpoint &checkpoint,
                                           ArrayRef<int64_t> prefix) {
  return Reader(directory, checkpoint).read(prefix);
}
