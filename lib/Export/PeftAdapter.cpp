// A LoRA adapter directory as PEFT reads it.
#include "Lora.h"
#include "NewDirectory.h"
#include "PatchMetadata.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Support/AtomicFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace ctxc;

/// The module as transformers' causal model names it. A checkpoint of the model without its head
/// stores names without the first part, and older checkpoints of vision models have its parts in
/// another order.
static std::string moduleOf(StringRef module) {
  if (module.starts_with("h."))
    return "transformer." + module.str();
  if (module.starts_with("layers."))
    return "model." + module.str();
  if (module.consume_front("language_model.model."))
    return "model.language_model." + module.str();
  return module.str();
}

/// Whether PEFT takes every target module with a name that experts once had (down_proj, ...) for
/// the experts, which transformers now keeps in one tensor, and leaves out the right module with a
/// warning. A target parameter is found by its name.
static bool takesNamesForExperts(StringRef modelType) {
  return StringSwitch<bool>(modelType)
      .Cases({"mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "deepseek_v3"}, true)
      .Default(false);
}

static Error writeAdapterConfig(StringRef path, ArrayRef<std::string> modules, bool inFirst,
                                const AdapterModel &model) {
  // PEFT has no name for the task of predicting masked tokens, and needs none.
  json::Value task = model.modelType == "bert" ? json::Value(nullptr) : "CAUSAL_LM";
  json::Object config{{"peft_type", "LORA"},
                      {"task_type", std::move(task)},
                      {"base_model_name_or_path", model.directory},
                      {"inference_mode", true},
                      {"r", 1},
                      {"lora_alpha", 1},
                      {"lora_dropout", 0.0},
                      {"use_rslora", false},
                      {"bias", "none"},
                      {"fan_in_fan_out", inFirst},
                      {"init_lora_weights", true},
                      {"rank_pattern", json::Object()},
                      {"alpha_pattern", json::Object()},
                      {"modules_to_save", nullptr},
                      {"target_modules", json::Array(modules)}};
  if (takesNamesForExperts(model.modelType)) {
    json::Array parameters;
    for (const std::string &module : modules)
      parameters.push_back(module + ".weight");
    config["target_modules"] = json::Array();
    config["target_parameters"] = std::move(parameters);
  }
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) {
    os << formatv("{0:2}", json::Value(std::move(config))) << "\n";
    return Error::success();
  });
}

static TensorSource sourceOf(std::string name, SmallVector<int64_t, 4> shape,
                             ArrayRef<double> values) {
  return {std::move(name), DType::F32, std::move(shape),
          [values](raw_ostream &os) { return writeFloat32(os, values); }};
}

Error ctxc::writePeftAdapter(StringRef outDir, const Patch &patch, const PatchMetadata &metadata,
                             const AdapterModel &model) {
  Expected<std::vector<LoraFactors>> factors = loraFactors(patch, model);
  if (!factors)
    return factors.takeError();
  std::vector<std::string> modules;
  std::vector<TensorSource> tensors;
  for (const LoraFactors &each : *factors) {
    modules.push_back(moduleOf(each.module));
    std::string prefix = "base_model.model." + modules.back();
    tensors.push_back(sourceOf(prefix + ".lora_A.weight", {1, int64_t(each.a.size())}, each.a));
    tensors.push_back(sourceOf(prefix + ".lora_B.weight", {int64_t(each.b.size()), 1}, each.b));
  }
  std::map<std::string, std::string> strings = metadataStrings(metadata);
  strings["format"] = "pt";
  return writeNewDirectory(outDir, "an adapter directory", [&](StringRef directory) -> Error {
    if (Error e = writeSafetensors(pathIn(directory, "adapter_model.safetensors"),
                                   std::move(tensors), strings))
      return e;
    return writeAdapterConfig(pathIn(directory, "adapter_config.json"), modules,
                              !model.inFirst.empty(), model);
  });
}
