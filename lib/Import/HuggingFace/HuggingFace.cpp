// From a checkpoint directory to a module: opens it, lets its family read the
// config, and builds the model and the blocks that its layers share.
#include "HuggingFace.h"
#include "../Described/Described.h"
#include "Architecture.h"
#include "ModelBuilder.h"
#include "Wrappers.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Suggestion.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

std::string inside(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

bool hasWeights(StringRef directory) {
  return sys::fs::exists(inside(directory, "model.safetensors")) ||
         sys::fs::exists(inside(directory, "model.safetensors.index.json"));
}

Expected<json::Value> readConfigAlone(StringRef directory) {
  std::string path = inside(directory, "config.json");
  if (!sys::fs::exists(path))
    return makeError(directory + ": has no config.json; expected a Hugging Face checkpoint "
                                 "directory");
  Expected<std::string> text = readSmallFile(path, 16 << 20);
  if (!text)
    return text.takeError();
  Expected<json::Value> value = parsePythonJson(*text, path);
  if (value && !value->getAsObject())
    return makeError(path + ": expected a JSON object");
  return value;
}

/// The readers by model_type.
constexpr std::pair<StringLiteral, std::unique_ptr<Family> (*)(ConfigReader &)> families[] = {
    // clang-format off: one line a family
    {"bert", makeBert},
    {"bloom", makeBloom},
    {"deepseek_v3", makeDeepseekV3},
    {"falcon", makeFalcon},
    {"falcon_h1", makeFalconH1},
    {"gemma", makeGemma},
    {"gemma2", makeGemma2},
    {"gemma3_text", makeGemma3},
    {"glm4", makeGlm4},
    {"gpt-sw3", makeGpt2}, // whose config is that of gpt2
    {"gpt2", makeGpt2},
    {"gpt_neo", makeGptNeo},
    {"gpt_neox", makeGptNeoX},
    {"gpt_oss", makeGptOss},
    {"gptj", makeGptJ},
    {"jamba", makeJamba},
    {"llama", makeLlama},
    {"mamba", makeMamba},
    {"mistral", makeMistral},
    {"mixtral", makeMixtral},
    {"olmo", makeOlmo},
    {"olmoe", makeOlmoe},
    {"opt", makeOpt},
    {"phi", makePhi},
    {"phi3", makePhi3},
    {"qwen2", makeQwen2},
    {"qwen2_moe", makeQwen2Moe},
    {"qwen3", makeQwen3},
    {"qwen3_moe", makeQwen3Moe},
    {"qwen3_next", makeQwen3Next},
    {"smollm3", makeSmolLM3},
    {"stablelm", makeStableLm},
    // clang-format on
};

/// The family of the config's model_type; null and a problem for any other.
std::unique_ptr<Family> makeFamily(ConfigReader &config) {
  std::string type = config.text("model_type", "");
  for (auto [name, make] : families)
    if (name == type)
      return make(config);
  std::vector<StringRef> known = supportedModelTypes();
  llvm::append_range(known, describedModelTypes());
  llvm::append_range(known, wrapperModelTypes());
  config.problem(
      "model_type",
      "is not supported" + suggestion(type, known) + "\nnote: " + Twine(known.size()) +
          " are, which docs/supported.md lists\n"
          "note: other ways in: python -m ctxc.export (docs/check-your-architecture.md), "
          "a .gguf or .mlir file");
  return nullptr;
}

/// The storage type of weights according to the config, which counts where there are no files.
DType configDType(ConfigReader &config, bool alone) {
  StringRef key = config.has("dtype") ? "dtype" : "torch_dtype";
  auto type = StringSwitch<std::optional<DType>>(config.text(key, "float32"))
                  .Cases({"float32", "torch.float32"}, DType::F32)
                  .Cases({"bfloat16", "torch.bfloat16"}, DType::BF16)
                  .Cases({"float16", "torch.float16"}, DType::F16)
                  .Default(std::nullopt);
  if (!type && alone)
    config.problem(key, "is not supported; float32, bfloat16 and float16 are");
  return type.value_or(DType::F32);
}

/// Reads quantization_config. The files show which tensors are quantised, and how
/// (Checkpoint::open); this checks the other keys that could change the numbers.
void readQuantization(ConfigReader &config) {
  StringRef key = "quantization_config";
  const json::Value *value = config.value(key);
  if (!value)
    return;
  const json::Object *object = value->getAsObject();
  std::optional<StringRef> method = object ? object->getString("quant_method") : std::nullopt;
  if (method != "fp8" && method != "mxfp4")
    return config.problem(key, "is not supported; a quant_method of fp8 (as DeepSeek-V3 has it) or "
                               "mxfp4 (as gpt-oss) is, and GGUF files are");
  ConfigReader &quantization = *config.object(key);
  quantization.unread({{"quant_method"}, {"modules_to_not_convert"}, {"dequantize"}});
  if (method == "mxfp4")
    return;
  auto must = [&](StringRef name, StringRef supported) {
    if (quantization.text(name, supported) != supported)
      quantization.problem(name, "is not supported; " + supported + " is");
  };
  must("fmt", "e4m3");
  must("expert_dtype", "fp8");
  must("activation_scheme", "dynamic"); // other schemes have stored scales of activations
  StringRef block = "weight_block_size";
  if (quantization.isNull(block) ||
      (quantization.integers(block, 1, maxWidth).size() != 2 && quantization.has(block)))
    quantization.problem(block, "is not understood; expected the rows and columns of a block");
  quantization.unread({{"scale_fmt"}, {"ignored_layers"}, {"modules_to_convert"}});
}

/// Whether a tensor belongs to a layer behind the family's last one.
bool isOfExtraLayer(const Family &family, StringRef name) {
  int64_t layer;
  for (StringRef stem : family.stems())
    if (StringRef rest = name; rest.consume_front((stem + family.layerStem()).str()) &&
                               !rest.consumeInteger(10, layer) && rest.starts_with("."))
      return layer >= family.layers && layer < family.layers + family.extraLayers;
  return false;
}

/// Whether the family's checkpoints hold `name` without effect on the next token.
bool isHarmless(const Family &family, StringRef name) {
  return name.ends_with("rotary_emb.inv_freq") || isOfExtraLayer(family, name) ||
         (family.tied && llvm::is_contained(family.headNames(), name)) ||
         llvm::any_of(family.otherTensors,
                      [&](StringRef pattern) { return matchesPattern(pattern, name); });
}

} // namespace

std::vector<StringRef> ctxc::supportedModelTypes() {
  std::vector<StringRef> types;
  for (const auto &family : families)
    types.push_back(family.first);
  return types;
}

std::vector<StringRef> ctxc::describedModelTypes() {
  std::vector<StringRef> types = described::types();
  llvm::erase_if(types,
                 [](StringRef type) { return llvm::is_contained(supportedModelTypes(), type); });
  return types;
}

/// The module of a type that has an importer.
static mlir::OwningOpRef<mlir::ModuleOp> importFamily(const json::Object &config,
                                                      ConfigReader &reader, StringRef configPath,
                                                      StoredTensors &tensors, Problems &problems,
                                                      mlir::MLIRContext &context,
                                                      std::vector<std::string> &warnings) {
  std::unique_ptr<Family> family = makeFamily(reader);
  if (family)
    reader.finish();
  if (!problems.empty())
    return nullptr;
  Task task = taskOf(config);
  ModelBuilder builder(*family, task, tensors, configPath, context);
  auto module = builder.build();
  tensors.rename(*module);
  OtherHead other(task, builder.readsHead(), builder.prefix());
  tensors.finish([&](StringRef name) { return isHarmless(*family, name) || other.takes(name); });
  warnings.push_back(other.warning(config, configPath));
  if (family->tied && builder.hasOwnHead())
    warnings.push_back(ownHeadWarning(configPath));
  return module;
}

/// The model that `config` describes, with the types that `checkpoint` stores; without one (null),
/// those of the config.
static Expected<ImportedModel> importConfig(const json::Object &config, StringRef directory,
                                            std::unique_ptr<Checkpoint> checkpoint,
                                            mlir::MLIRContext &context,
                                            const ImportOptions &options) {
  ImportedModel imported;
  imported.checkpoint = std::move(checkpoint);
  Problems problems;
  std::string configPath =
      imported.checkpoint ? imported.checkpoint->configPath() : inside(directory, "config.json");
  ConfigReader reader(config, configPath, "", configKeys, problems);
  readQuantization(reader);
  StoredTensors tensors(imported.checkpoint.get(), directory,
                        configDType(reader, !imported.checkpoint), options.storage, problems);
  // Of a model of text and of images or sounds, the text model's.
  std::optional<json::Object> text = textModelOf(config, reader);
  ConfigReader ofText(text ? *text : config, configPath,
                      config.getObject("text_config") ? "text_config." : "", configKeys, problems);
  if (text)
    tensors.setWrapper(config.getString("model_type").value_or(""));
  if (!problems.empty())
    return problems.take();
  ConfigReader &own = text ? ofText : reader;
  StringRef type = (text ? *text : config).getString("model_type").value_or("");
  StringRef description =
      llvm::is_contained(supportedModelTypes(), type) ? "" : described::descriptionOf(type);
  imported.module =
      description.empty()
          ? importFamily(config, own, configPath, tensors, problems, context, imported.warnings)
          : described::importConfig(description, config, own, configPath, tensors,
                                    options.needWeights, problems, context, imported.warnings);
  if (text)
    reader.finish();
  if (!problems.empty())
    return problems.take();
  llvm::erase_if(imported.warnings, [](const std::string &warning) { return warning.empty(); });
  if (failed(mlir::verify(*imported.module)))
    return makeError(configPath + ": the imported model does not verify; see the messages above");
  return imported;
}

Expected<ImportedModel> hf::importOpened(std::unique_ptr<Checkpoint> checkpoint,
                                         mlir::MLIRContext &context, const ImportOptions &options) {
  const json::Object &config = checkpoint->config();
  std::string directory = checkpoint->directory().str();
  return importConfig(config, directory, std::move(checkpoint), context, options);
}

Expected<ImportedModel> hf::importDirectory(StringRef directory, mlir::MLIRContext &context,
                                            const ImportOptions &options) {
  if (options.needWeights || !sys::fs::is_directory(directory) || hasWeights(directory)) {
    Expected<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(directory);
    if (!opened)
      return opened.takeError();
    return importOpened(std::move(*opened), context, options);
  }
  Expected<json::Value> alone = readConfigAlone(directory);
  if (!alone)
    return alone.takeError();
  return importConfig(*alone->getAsObject(), directory, nullptr, context, options);
}
