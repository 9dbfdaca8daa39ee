// adapter_config.json
#include "PeftConfig.h"
#include "ctxc/Support/AtomicFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace ctxc;

std::string ctxc::moduleOf(StringRef module, StringRef modelType) {
  // Whose checkpoints name the text model as one that stands alone ("flat" in
  // lib/Import/HuggingFace/wrappers.json).
  const bool isWithin = modelType == "qwen2_vl" || modelType == "qwen2_5_vl";
  if (StringRef own = module; isWithin && own.consume_front("model.") &&
                              !own.starts_with("language_model.") && !own.starts_with("visual."))
    return "model.language_model." + own.str();
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

Error ctxc::writePeftConfig(StringRef path, const PeftConfig &adapter, const AdapterModel &model) {
  int64_t rank = 1;
  for (const auto &[module, each] : adapter.modules)
    rank = std::max(rank, each);
  for (const auto &[parameter, each] : adapter.parameters)
    rank = std::max(rank, each);
  const bool asParameters = takesNamesForExperts(model.modelType);
  json::Object ranks; // of the modules and parameters that have another
  json::Array modules, parameters;
  auto add = [&](json::Array &names, const std::string &name, int64_t each) {
    names.push_back(name);
    if (each != rank)
      ranks[name] = each;
  };
  for (const auto &[module, each] : adapter.modules)
    if (asParameters)
      add(parameters, module + ".weight", each);
    else
      add(modules, module, each);
  for (const auto &[parameter, each] : adapter.parameters)
    add(parameters, parameter, each);
  // PEFT has no name for the task of predicting masked tokens, and needs none.
  json::Value task = model.modelType == "bert" ? json::Value(nullptr) : "CAUSAL_LM";
  json::Value replaced =
      adapter.replaced.empty() ? json::Value(nullptr) : json::Value(json::Array(adapter.replaced));
  json::Object config{{"peft_type", "LORA"},
                      {"task_type", std::move(task)},
                      {"base_model_name_or_path", model.directory},
                      {"inference_mode", true},
                      {"r", rank},
                      {"lora_alpha", rank},
                      {"lora_dropout", 0.0},
                      {"use_rslora", false},
                      {"bias", "none"},
                      {"fan_in_fan_out", adapter.inFirst},
                      {"init_lora_weights", true},
                      {"rank_pattern", json::Object(ranks)},
                      {"alpha_pattern", std::move(ranks)},
                      {"modules_to_save", std::move(replaced)},
                      {"target_modules", std::move(modules)}};
  if (!parameters.empty())
    config["target_parameters"] = std::move(parameters);
  return writeJson(path, std::move(config));
}

Error ctxc::writeJson(StringRef path, json::Object object) {
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) {
    os << formatv("{0:2}", json::Value(std::move(object))) << "\n";
    return Error::success();
  });
}
