#include "ctxc/Checkpoint/SentencePooling.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t maxBytes = 1 << 20;

Expected<json::Value> readJson(const std::string &path) {
  Expected<std::string> text = readSmallFile(path, maxBytes);
  if (!text)
    return text.takeError();
  return parseStrictJson(*text, path);
}

/// The kinds by their keys, which can be on together, in the order in which their vectors are
/// joined.
constexpr std::pair<StringLiteral, PoolingKind> flags[] = {
    {"pooling_mode_cls_token", PoolingKind::First},
    {"pooling_mode_max_tokens", PoolingKind::Largest},
    {"pooling_mode_mean_tokens", PoolingKind::Mean},
    {"pooling_mode_mean_sqrt_len_tokens", PoolingKind::MeanOfRoot},
    {"pooling_mode_weightedmean_tokens", PoolingKind::WeightedMean},
    {"pooling_mode_lasttoken", PoolingKind::Last},
};

/// The kinds by the names that later files have.
std::optional<PoolingKind> kindNamed(StringRef name) {
  return StringSwitch<std::optional<PoolingKind>>(name)
      .Case("cls", PoolingKind::First)
      .Case("max", PoolingKind::Largest)
      .Case("mean", PoolingKind::Mean)
      .Case("mean_sqrt_len_tokens", PoolingKind::MeanOfRoot)
      .Case("weightedmean", PoolingKind::WeightedMean)
      .Case("lasttoken", PoolingKind::Last)
      .Default(std::nullopt);
}

/// Reads the config of a Pooling module.
Error readKinds(const std::string &path, Pooling &pooling) {
  Expected<json::Value> read = readJson(path);
  if (!read)
    return read.takeError();
  const json::Object *config = read->getAsObject();
  if (!config)
    return makeError(path + ": expected a JSON object");
  for (auto [key, kind] : flags)
    if (config->getBoolean(key).value_or(false))
      pooling.kinds.push_back(kind);
  for (const auto &[key, value] : *config) {
    StringRef name = key;
    bool isFlag = llvm::is_contained(llvm::make_first_range(flags), name);
    std::optional<PoolingKind> named = kindNamed(value.getAsString().value_or(""));
    if (name == "pooling_mode" && named)
      pooling.kinds = {*named};
    else if (!(isFlag && value.getAsBoolean()) && name != "word_embedding_dimension" &&
             name != "embedding_dimension" &&
             name != "include_prompt") // which is of texts in front
      return makeError(
          path + ": key " + quoted(name) +
          " is not understood; expected one of sentence-transformers' ways of pooling: "
          "cls, max, mean, mean_sqrt_len, weightedmean or lasttoken");
  }
  if (pooling.kinds.empty())
    return makeError(path + ": turns no way of pooling on; expected one");
  return Error::success();
}

/// The class of a module, without its package, which has moved.
StringRef className(const json::Object &module) {
  return module.getString("type").value_or("").rsplit('.').second;
}

} // namespace

/// What DIRECTORY/modules.json says.
static Expected<std::optional<Pooling>> readModules(StringRef directory) {
  std::string path = pathIn(directory, "modules.json");
  if (!sys::fs::exists(path))
    return std::nullopt;
  Expected<json::Value> read = readJson(path);
  if (!read)
    return read.takeError();
  const json::Array *modules = read->getAsArray();
  Pooling pooling;
  for (const json::Value &each : modules ? *modules : json::Array()) {
    const json::Object *module = each.getAsObject();
    StringRef name = module ? className(*module) : "";
    StringRef folder = module ? module->getString("path").value_or("") : "";
    if (name == "Transformer" && pooling.kinds.empty())
      continue;
    if (name == "Normalize" && !pooling.kinds.empty()) {
      pooling.normalize = true;
    } else if (name == "Pooling" && pooling.kinds.empty() && !folder.contains("..")) {
      if (Error error = readKinds(pathIn(pathIn(directory, folder), "config.json"), pooling))
        return std::move(error);
    } else {
      return makeError(path + ": module " + quoted(name) + " in " + quoted(folder) +
                       " is not read; expected a Transformer, a Pooling and a Normalize");
    }
  }
  if (pooling.kinds.empty())
    return makeError(path + ": has no module Pooling; expected one behind the Transformer");
  return pooling;
}

/// What llama.cpp's number stands for; none for 0, no pooling.
static Expected<std::optional<Pooling>> readGguf(StringRef path) {
  Expected<std::unique_ptr<GgufFile>> file = GgufFile::open(path);
  if (!file)
    return file.takeError();
  std::string key = ((*file)->text("general.architecture").value_or("") + ".pooling_type").str();
  switch (int64_t number = (*file)->integer(key).value_or(0)) {
  case 0:
    return std::nullopt;
  case 1:
    return Pooling{{PoolingKind::Mean}};
  case 2:
    return Pooling{{PoolingKind::First}};
  case 3:
    return Pooling{{PoolingKind::Last}};
  default:
    return makeError(path + ": key " + quoted(key) + " = " + Twine(number) +
                     " is not read; expected 1 (the mean), 2 (the first token) or 3 (the last)");
  }
}

Expected<std::optional<Pooling>> ctxc::readPooling(const Checkpoint &checkpoint) {
  if (checkpoint.isGguf())
    return readGguf(checkpoint.directory());
  return readModules(checkpoint.directory());
}
