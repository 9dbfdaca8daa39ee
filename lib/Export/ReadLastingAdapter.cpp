// Reading such a directory, or one that PEFT wrote.
#include "ExpertLora.h"
#include "Lora.h"
#include "PeftConfig.h"
#include "PrefixAdapter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

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
  std::string parameterOf(StringRef module) const;
  Error readExperts(StringRef module, StringRef parameter, const TensorView &a, Adapter &adapter);
  Expected<double> factorOf(StringRef name, int64_t rank) const;
  Error readVector(StringRef module, const TensorView &tensor, Adapter &adapter) const;
  Expected<const TensorView *> storedOf(StringRef module) const;
  Expected<std::vector<float>> numbersOf(const TensorView &tensor) const;
  Error multiply(std::vector<float> &numbers, double factor, StringRef name) const;
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
  StringRef kind = config.getString("peft_type").value_or("");
  if (kind == prefixTuning)
    return Error::success();
  if (kind != "LORA")
    return makeError(path + ": found an adapter of another kind, expected peft_type LORA or " +
                     prefixTuning);
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

/// What B A is multiplied by, of a module or parameter `name`.
Expected<double> Reader::factorOf(StringRef name, int64_t found) const {
  double rank = numberFor("rank_pattern", name, config.getNumber("r").value_or(found));
  double alpha = numberFor("alpha_pattern", name, config.getNumber("lora_alpha").value_or(rank));
  if (!(rank > 0) || !std::isfinite(alpha))
    return fail("adapter_config.json: the rank of " + quoted(name) + " is not positive");
  bool isRootScaled = config.getBoolean("use_rslora").value_or(false);
  return alpha / (isRootScaled ? std::sqrt(rank) : rank);
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
  if (const json::Array *names = config.getArray("target_parameters"))
    for (const json::Value &each : *names) {
      StringRef name = each.getAsString().value_or(""), target = name.rsplit('.').first;
      StringRef parameter = name.substr(name.rfind('.') + 1);
      bool isHere = target == name ? findExperts(module, parameter, checkpoint).has_value()
                                   : module == target || module.ends_with(("." + target).str());
      if (isHere && parameter != "weight")
        return parameter.str();
    }
  return "";
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
  Expected<double> factor = factorOf(name, lora.rank);
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
  Expected<double> factor = factorOf(module, change.rank);
  if (!factor)
    return factor.takeError();
  if (Error e = multiply(*left, *factor, module))
    return e;
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
  if (config.getString("peft_type") == prefixTuning) {
    if (Error e = readPrefix(directory, config, *file).moveInto(adapter.entries))
      return std::move(e);
    return adapter;
  }
  adapter.prefix = prefix.vec();
  if (Error e = readFront(adapter))
    return std::move(e);
  for (const TensorView &tensor : file->tensors()) {
    StringRef name = tensor.name;
    if (!name.consume_front(peftPrefix))
      return fail("tensor " + quoted(tensor.name) + ": expected a name that begins with " +
                  peftPrefix);
    if (name.consume_back(".lora_A.weight")) {
      std::string parameter = parameterOf(name);
      if (Error e = parameter.empty() ? readMatrix(name, tensor, adapter)
                                      : readExperts(name, parameter, tensor, adapter))
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
