// Writing an adapter as a directory.
#include "ctxc/Export/LastingAdapter.h"
#include "ExpertLora.h"
#include "Lora.h"
#include "NamedChanges.h"
#include "PeftConfig.h"
#include "PrefixAdapter.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/NewDirectory.h"

using namespace llvm;
using namespace ctxc;

/// The parameter's module; an error where it is the weight of none, or not the checkpoint's.
static Expected<std::string> moduleFor(StringRef parameter, const Checkpoint &checkpoint) {
  if (!checkpoint.find(parameter))
    return makeError(parameter + ": is no tensor of " + checkpoint.directory());
  StringRef module = parameter;
  if (!module.consume_back(".weight"))
    return makeError("parameter " + quoted(parameter) + ": is not the weight of a module");
  return moduleOf(module, checkpoint.config().getString("model_type").value_or(""));
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
  tensors.push_back(floats(name + ".lora_A.weight", {change.rank, in}, std::move(a)));
  tensors.push_back(floats(name + ".lora_B.weight", {out, change.rank}, std::move(b)));
  return Error::success();
}

/// As PEFT has a parameter with a matrix for each expert: lora_A is (experts · rank, in), and
/// lora_B (out, rank · experts), of which the expert varies fastest.
static void addExperts(const ExpertLora &lora, PeftConfig &config,
                       std::vector<TensorSource> &tensors) {
  const int64_t together = lora.rank * lora.experts;
  config.parameters.push_back({lora.place.module + "." + lora.place.parameter, lora.rank});
  std::vector<float> b(lora.b.size());
  for (int64_t expert = 0; expert < lora.experts; ++expert)
    for (int64_t i = 0; i < lora.out * lora.rank; ++i)
      b[i * lora.experts + expert] = lora.b[expert * lora.out * lora.rank + i];
  std::string name = (peftPrefix + lora.place.module).str();
  tensors.push_back(floats(name + ".lora_A.weight", {together, lora.in}, lora.a));
  tensors.push_back(floats(name + ".lora_B.weight", {lora.out, together}, std::move(b)));
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
      floats((peftPrefix + *module + ".weight").str(), stored.shape, std::move(numbers)));
  return Error::success();
}

static Error writeCache(StringRef path, ArrayRef<KeysAndValues> cache,
                        const std::map<std::string, std::string> &strings) {
  std::vector<TensorSource> tensors;
  for (auto [i, layer] : enumerate(cache)) {
    std::string name = ("layers." + Twine(i)).str();
    tensors.push_back(
        floats(name + ".keys", {layer.heads, layer.tokens, layer.keyWidth}, layer.keys));
    tensors.push_back(
        floats(name + ".values", {layer.heads, layer.tokens, layer.valueWidth}, layer.values));
  }
  return writeSafetensors(path, std::move(tensors), strings);
}

/// The tensors of changes, and what the config says of them.
static Error addChanges(const Adapter &adapter, const Checkpoint &checkpoint, PeftConfig &config,
                        std::vector<TensorSource> &tensors) {
  for (const MatrixChange &change : adapter.matrices)
    if (!expertPlace(change.parameter))
      if (Error e = addMatrix(change, checkpoint, config, tensors))
        return e;
  for (const ExpertLora &lora : expertLoras(adapter, checkpoint))
    addExperts(lora, config, tensors);
  for (const VectorChange &change : adapter.vectors)
    if (Error e = addVector(change, checkpoint, config, tensors))
      return e;
  return Error::success();
}

Error ctxc::writeLastingAdapter(StringRef outDir, const Adapter &adapter,
                                const Checkpoint &checkpoint, ArrayRef<AdapterFile> files,
                                ArrayRef<KeysAndValues> cache) {
  const bool hasEntries = !adapter.entries.empty();
  if (adapter.matrices.empty() && !hasEntries)
    return makeError("the adapter changes no matrix");
  if (!adapter.matrices.empty() && hasEntries)
    return makeError("an adapter of PEFT has either changes of matrices or virtual entries");
  const bool isNamed = namesParametersAlone(checkpoint);
  if (isNamed && (hasEntries || !cache.empty()))
    return makeError(checkpoint.directory() + ": has no cache of transformers");
  PeftConfig config;
  std::vector<TensorSource> tensors;
  std::map<std::string, std::string> strings = frontStrings(adapter);
  strings["format"] = "pt";
  if (isNamed)
    addNamedChanges(adapter, tensors, strings);
  else if (Error e = hasEntries ? prefixTensor(adapter.entries).moveInto(tensors.emplace_back())
                                : addChanges(adapter, checkpoint, config, tensors))
    return e;
  AdapterModel model;
  model.directory = checkpoint.directory().str();
  model.modelType = checkpoint.config().getString("model_type").value_or("").str();
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
    if (isNamed)
      return Error::success();
    const std::string path = pathIn(directory, "adapter_config.json");
    return hasEntries ? writeJson(path, prefixConfig(adapter.entries, model))
                      : writePeftConfig(path, config, model);
  });
}
