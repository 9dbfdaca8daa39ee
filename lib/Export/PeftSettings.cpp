#include "PeftSettings.h"
#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

namespace {

/// Whether `name` is `end`, or ends with it behind a dot.
bool endsWithName(StringRef name, StringRef end) {
  return name.consume_back(end) && (name.empty() || name.ends_with("."));
}

std::string keyIn(StringRef path, StringRef key) { return (path + ": key " + quoted(key)).str(); }

/// A string, or an array of strings; whether it is a string.
bool readNames(ConfigReader &config, StringRef key, std::vector<std::string> &names) {
  const json::Value *value = config.value(key);
  bool isText = value && value->getAsString();
  names = isText ? std::vector{value->getAsString()->str()} : config.texts(key);
  return isText;
}

/// A number that is not null; `absent` without the key.
double readPositive(ConfigReader &config, StringRef key, double absent, bool isWhole) {
  if (config.isNull(key))
    config.problem(key, "is not understood; expected a number, or no such key, which means " +
                            Twine(int64_t(absent)));
  constexpr int64_t most = 1 << 24;
  return isWhole ? double(config.integer(key, int64_t(absent), 1, most))
                 : config.number(key, absent, -1e30, 1e30);
}

} // namespace

/// The numbers of an object by pattern, in the order of the text.
static Expected<std::vector<std::pair<NamePattern, double>>>
readPatterns(JsonView object, ConfigReader &config, StringRef key, StringRef path, bool areWhole) {
  std::vector<std::pair<NamePattern, double>> numbers;
  const json::Value *value = config.value(key);
  if (config.isNull(key) || (value && !value->getAsObject()))
    config.problem(key, "is not understood; expected an object with a number for each pattern, or "
                        "no such key");
  for (JsonView member : object[key]) {
    std::optional<double> number = member.number();
    if (!number || !std::isfinite(*number) || (areWhole && (!member.integer() || *number < 1)))
      return makeError(keyIn(path, key) + " has no " + (areWhole ? "rank" : "number") + " for " +
                       quoted(member.key()) + "; expected " +
                       (areWhole ? "an integer from 1 on" : "a number"));
    auto pattern = NamePattern::compile(member.key(), keyIn(path, key), "(.*\\.)?(", ")");
    if (!pattern)
      return pattern.takeError();
    numbers.emplace_back(std::move(*pattern), *number);
  }
  return numbers;
}

Error PeftSettings::readModules(ConfigReader &config) {
  auto readPattern = [&](StringRef key, std::vector<std::string> &names,
                         std::optional<NamePattern> &pattern) -> Error {
    if (!readNames(config, key, names))
      return Error::success();
    return NamePattern::compile(std::exchange(names, {})[0], keyIn(path, key)).moveInto(pattern);
  };
  const json::Value *target = config.value("target_modules");
  all = target && target->getAsString() && target->getAsString()->equals_insensitive("all-linear");
  if (!all)
    if (Error error = readPattern("target_modules", targets, targetPattern))
      return error;
  if (Error error = readPattern("exclude_modules", excluded, excludedPattern))
    return error;
  saved = config.texts("modules_to_save");
  for (const std::string &name : saved)
    if (Error error =
            NamePattern::compile(name, keyIn(path, "modules_to_save"), "(^|.*\\.)", "($|\\..*)")
                .moveInto(savedPatterns.emplace_back()))
      return error;
  targetParameters = config.texts("target_parameters");

  const json::Value *layer = config.value("layers_to_transform");
  if (layer && layer->getAsInteger())
    layers = {*layer->getAsInteger()};
  else
    layers = config.integers("layers_to_transform", 0, 1 << 24);
  std::vector<std::string> lists;
  readNames(config, "layers_pattern", lists);
  if (lists == std::vector<std::string>{""})
    lists.clear();
  hasLists = !lists.empty();
  for (StringRef key : {"layers_to_transform", "layers_pattern"})
    if (config.has(key) && target && target->getAsString())
      config.problem(key, "goes with a list of target_modules alone");
  if (!lists.empty() && !config.has("layers_to_transform"))
    config.problem("layers_pattern", "needs the key 'layers_to_transform' beside it");
  for (const std::string &name : lists)
    if (Error error = NamePattern::compile(name, keyIn(path, "layers_pattern"), "(?:^|.*?\\.)",
                                           "\\.(?P<idx>\\d+)\\.")
                          .moveInto(layerPatterns.emplace_back()))
      return error;
  if (lists.empty()) // the first number in the name
    return NamePattern::compile(".*?\\.[^.]*\\.(?P<idx>\\d+)\\.", path)
        .moveInto(layerPatterns.emplace_back());
  return Error::success();
}

Expected<PeftSettings> PeftSettings::read(std::string text, StringRef path) {
  auto value = parseStrictJson(text, path);
  if (!value)
    return value.takeError();
  if (!value->getAsObject())
    return makeError(path + ": expected an object");
  Expected<JsonTree> tree = JsonTree::parse(std::move(text), path);
  if (!tree)
    return tree.takeError();
  Problems problems;
  ConfigReader config(*value->getAsObject(), path, "", peftKeys, problems);
  if (config.text("peft_type", "") != "LORA")
    return makeError(path + ": found an adapter of another kind, expected peft_type LORA or "
                            "PREFIX_TUNING");
  PeftSettings settings;
  settings.path = path.str();
  settings.rank = int64_t(readPositive(config, "r", 8, /*isWhole=*/true));
  settings.alpha = readPositive(config, "lora_alpha", 8, /*isWhole=*/false);
  settings.isRootScaled = config.flag("use_rslora", false);
  if (config.isNull("bias") || config.text("bias", "none") != "none")
    config.problem("bias", "is not supported: it changes biases; expected 'none'");
  for (auto [key, numbers] :
       {std::pair("rank_pattern", &settings.ranks), std::pair("alpha_pattern", &settings.alphas)}) {
    auto read = readPatterns(tree->root(), config, key, path, StringRef(key) == "rank_pattern");
    if (!read)
      return joinErrors(problems.take(), read.takeError());
    *numbers = std::move(*read);
  }
  if (Error error = settings.readModules(config))
    return joinErrors(problems.take(), std::move(error));
  config.finish();
  if (Error error = problems.take())
    return std::move(error);
  return settings;
}

Expected<StringRef> PeftSettings::excludedByLayer(StringRef module) const {
  if (layers.empty())
    return "";
  for (const NamePattern &pattern : layerPatterns) {
    Expected<std::string> index = pattern.indexIn(module);
    if (!index)
      return index.takeError();
    int64_t layer;
    if (!index->empty())
      return StringRef(*index).getAsInteger(10, layer) || !is_contained(layers, layer)
                 ? "layers_to_transform"
                 : "";
  }
  return hasLists ? "layers_pattern" : "layers_to_transform";
}

Expected<StringRef> PeftSettings::excludedBy(StringRef module) const {
  auto isNamed = [&](ArrayRef<std::string> names) {
    return any_of(names, [&](StringRef name) { return endsWithName(module, name); });
  };
  Expected<bool> isExcluded = excludedPattern ? excludedPattern->fits(module) : isNamed(excluded);
  if (!isExcluded)
    return isExcluded.takeError();
  if (*isExcluded)
    return "exclude_modules";
  for (const NamePattern &pattern : savedPatterns) {
    Expected<bool> fits = pattern.fits(module);
    if (!fits)
      return fits.takeError();
    if (*fits)
      return "modules_to_save";
  }
  if (all || is_contained(targets, module))
    return "";
  Expected<bool> isTarget = targetPattern ? targetPattern->fits(module) : isNamed(targets);
  if (!isTarget)
    return isTarget.takeError();
  if (!*isTarget)
    return "target_modules";
  return excludedByLayer(module);
}

bool PeftSettings::saves(StringRef module) const {
  return any_of(saved, [&](StringRef name) { return module.ends_with(name); });
}

bool PeftSettings::takesParameter(StringRef name) const {
  return any_of(targetParameters, [&](StringRef end) { return endsWithName(name, end); });
}

Expected<std::optional<double>> PeftSettings::numberFor(const ByPattern &numbers,
                                                        StringRef name) const {
  for (const auto &[pattern, number] : numbers) {
    Expected<bool> fits = pattern.fits(name);
    if (!fits)
      return fits.takeError();
    if (*fits)
      return number;
  }
  return std::nullopt;
}

Expected<double> PeftSettings::factorOf(StringRef name, int64_t found) const {
  auto ownRank = numberFor(ranks, name), ownAlpha = numberFor(alphas, name);
  if (!ownRank || !ownAlpha)
    return joinErrors(ownRank.takeError(), ownAlpha.takeError());
  double expected = ownRank->value_or(double(rank));
  if (expected != double(found))
    return makeError(keyIn(path, *ownRank ? "rank_pattern" : "r") + " gives " + quoted(name) +
                     " the rank " + Twine(int64_t(expected)) +
                     "; adapter_model.safetensors has factors of rank " + Twine(found));
  return ownAlpha->value_or(alpha) / (isRootScaled ? std::sqrt(expected) : expected);
}
