#include "ctxc/Export/PatchShard.h"
#include "PatchMetadata.h"
#include "PatchTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;

static constexpr StringLiteral shardFormat = "ctxc-patches";

static std::string prefixOf(int64_t prompt, int64_t position) {
  return std::to_string(prompt) + "/" + std::to_string(position) + "/";
}

Error PatchShard::add(int64_t prompt, Patch patch, const PatchMetadata &metadata) {
  if (Error error = checkPatch(patch))
    return error;
  for (const ParameterPatch &p : patch.parameters)
    size += sizeof(float) * (p.u.size() + p.v.size() + p.delta.size());
  patches[{prompt, metadata.position}] = std::move(patch);
  PatchMetadata &known = prompts[prompt];
  if (known.tokens.size() < metadata.tokens.size())
    known = metadata;
  return Error::success();
}

Error PatchShard::write(StringRef path) {
  std::map<std::string, std::string> strings;
  for (const auto &[prompt, metadata] : prompts)
    for (auto &[key, value] : metadataStrings(metadata)) {
      bool isOfPrompt = key == "tokens" || key == "kept";
      if (key != "position")
        strings[isOfPrompt ? std::to_string(prompt) + "." + key : key] = value;
    }
  strings["format"] = shardFormat;
  std::vector<TensorSource> tensors;
  for (const auto &[place, patch] : patches)
    addTensors(patch, DType::F32, prefixOf(place.first, place.second), tensors);
  if (Error error = writeSafetensors(path, std::move(tensors), strings))
    return error;
  *this = PatchShard();
  return Error::success();
}

Expected<std::pair<Patch, PatchMetadata>> ctxc::readFromShard(StringRef path, int64_t prompt,
                                                              int64_t position) {
  Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  std::map<std::string, std::string> strings = (*file)->metadata();
  std::string number = std::to_string(prompt);
  if (strings["format"] != shardFormat)
    return makeError(path + ": is not a file of many prompts' patches");
  auto ofPrompt = [&](const char *key) { return strings.find(number + "." + key); };
  auto tokens = ofPrompt("tokens"), kept = ofPrompt("kept");
  if (tokens == strings.end() || kept == strings.end())
    return makeError(path + ": has no patch of line " + number);
  // Both lists reach to the last position of the prompt: this patch's end before.
  Problems problems(path.str() + ": ");
  strings["tokens"] = tokens->second;
  strings["position"] = std::to_string(position);
  strings["kept"] = "";
  PatchMetadata metadata =
      parsePatchMetadata(strings, [&](const Twine &message) { problems.add(message); });
  for (StringRef item : split(kept->second, ',')) {
    int64_t value;
    if (item.empty() ? false : item.getAsInteger(10, value))
      problems.add("found kept " + quoted(kept->second) + ", expected positions");
    else if (!item.empty() && value < position)
      metadata.kept.push_back(value);
  }
  metadata.tokens.resize(std::min<size_t>(metadata.tokens.size(), position + 1));
  Expected<Patch> patch =
      readTensors((*file)->tensors(), DType::F32, prefixOf(prompt, position), problems);
  if (!patch)
    return patch.takeError();
  if (patch->parameters.empty())
    return makeError(path + ": has no patch of line " + number + " at position " + Twine(position));
  return std::make_pair(std::move(*patch), std::move(metadata));
}
