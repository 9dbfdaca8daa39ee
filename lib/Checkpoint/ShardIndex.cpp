#include "ShardIndex.h"
#include "ctxc/Checkpoint/ConfigReader.h"
#include "ctxc/Checkpoint/FormatKeys.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t maxIndexBytes = 100'000'000;

/// Why `file` cannot be a shard's name; empty when it can.
std::string objection(StringRef file) {
  if (file.empty() || file == "." || file == "..")
    return "expected a file name";
  if (file.find_first_of("/\\") != StringRef::npos)
    return "it points outside the checkpoint's directory, expected a plain file name";
  if (any_of(file, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return "it contains a control character, expected a plain file name";
  if (file.size() > 255)
    return "it is longer than a file name can be";
  if (file.ends_with(".bin") || file.ends_with(".pt") || file.ends_with(".pth"))
    return "pickled weights are never read; convert the checkpoint to safetensors";
  if (!file.ends_with(".safetensors"))
    return "expected a .safetensors file";
  return "";
}

} // namespace

static constexpr KeyRule keysOfIndex[] = {
    {"weight_map", isRead, "the file of each tensor"},
    {"metadata", {}, "sizes and texts, which the files themselves have"},
    {"*", never, "something that is not known here"},
};

const KeyTable ctxc::shardIndexKeys{"model.safetensors.index.json", keysOfIndex};

Expected<std::map<std::string, std::string>> ctxc::readShardIndex(StringRef path) {
  Expected<std::string> text = readSmallFile(path, maxIndexBytes);
  if (!text)
    return text.takeError();
  Expected<json::Value> value = parseStrictJson(*text, path);
  if (!value)
    return value.takeError();
  const json::Object *top = value->getAsObject();
  const json::Object *weightMap = top ? top->getObject("weight_map") : nullptr;
  if (!weightMap)
    return makeError(path + ": has no object 'weight_map' that maps tensors to files");
  Problems unknown;
  ConfigReader keys(*top, path, "", shardIndexKeys, unknown);
  keys.value("weight_map");
  keys.finish();
  if (!unknown.empty())
    return unknown.take();

  std::map<std::string, std::string> map;
  // A bad name usually stands beside many tensors: report it once.
  std::map<std::string, std::string> problems;
  for (const auto &[tensor, file] : *weightMap) {
    std::optional<StringRef> name = file.getAsString();
    if (!name)
      problems.emplace("tensor " + quoted(tensor),
                       "is mapped to something that is not a string, expected a file name");
    else if (std::string why = objection(*name); !why.empty())
      problems.emplace("file " + quoted(*name), "of tensor " + quoted(tensor) + ": " + why);
    else
      map[tensor.str()] = name->str();
  }
  Error errors = Error::success();
  for (const auto &[what, why] : problems)
    errors = joinErrors(std::move(errors), makeError(path + ": " + what + " " + why));
  if (errors)
    return std::move(errors);
  if (map.empty())
    return makeError(path + ": 'weight_map' is empty");
  return map;
}
