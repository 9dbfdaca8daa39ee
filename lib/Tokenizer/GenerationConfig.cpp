#include "ctxc/Tokenizer/GenerationConfig.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Tokenizer/TokenizerKeys.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace ctxc;

Expected<std::vector<int64_t>> ctxc::readStops(const json::Value &value, StringRef path) {
  std::vector<int64_t> stops;
  auto add = [&](const json::Value &one) {
    auto id = one.getAsInteger();
    if (id)
      stops.push_back(*id);
    return id.has_value();
  };
  const json::Array *list = value.getAsArray();
  if (value.getAsNull() || (list ? !list->empty() && all_of(*list, add) : add(value)))
    return stops;
  return makeError(path + ": key 'eos_token_id' = " + printableLine(formatv("{0}", value).str()) +
                   ": expected a token's id, or a list of ids");
}

Expected<std::optional<GenerationConfig>> GenerationConfig::read(StringRef directory) {
  SmallString<256> path(directory);
  sys::path::append(path, "generation_config.json");
  if (!sys::fs::exists(path))
    return std::nullopt;
  Expected<std::string> text = readSmallFile(path, 16 << 20);
  if (!text)
    return text.takeError();
  Expected<json::Value> value = parseStrictJson(*text, path);
  if (!value)
    return value.takeError();
  const json::Object *keys = value->getAsObject();
  if (!keys)
    return makeError(path + ": expected an object");
  GenerationConfig config;
  std::vector<std::string> others;
  for (const auto &[key, of] : *keys) {
    if (key == "eos_token_id") {
      if (Error error = readStops(of, path).moveInto(config.stops))
        return std::move(error);
    } else if (!generationConfigKeys.ruleFor(key).allows(key, *keys)) {
      others.push_back(printableLine(formatv("{0} = {1}", StringRef(key), of).str()));
    }
  }
  llvm::sort(others);
  if (!others.empty())
    config.warning = (path + ": by " + join(others, ", ") +
                      " transformers may take other tokens; here each is the most probable one")
                         .str();
  return std::optional(std::move(config));
}
