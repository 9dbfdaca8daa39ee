// Which file of a checkpoint is its tokenizer.
#include "SentencePieceBeside.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Tokenizer/EncodePrompt.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace ctxc;

static std::string inside(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

/// bos_token_id of config.json, or of its text_config; none where it is not clear.
static std::optional<int64_t> configuredBos(StringRef directory) {
  std::string path = inside(directory, "config.json");
  if (!sys::fs::exists(path))
    return std::nullopt;
  Expected<std::string> text = readSmallFile(path, 16 << 20);
  if (!text) {
    consumeError(text.takeError());
    return std::nullopt;
  }
  Expected<json::Value> config = parseStrictJson(*text, path);
  if (!config) {
    consumeError(config.takeError());
    return std::nullopt;
  }
  const json::Object *object = config->getAsObject();
  if (!object)
    return std::nullopt;
  if (std::optional<int64_t> id = object->getInteger("bos_token_id"))
    return id;
  const json::Object *nested = object->getObject("text_config");
  return nested ? nested->getInteger("bos_token_id") : std::nullopt;
}

Expected<std::unique_ptr<Tokenizer>> Tokenizer::open(StringRef directory) {
  if (!sys::fs::is_directory(directory)) {
    if (directory.ends_with(".json"))
      return openTokenizerJson(directory);
    if (directory.ends_with(".model"))
      return openSentencePiece(directory, configuredBos(sys::path::parent_path(directory)));
    return openGgufTokenizer(directory);
  }
  std::string json = inside(directory, "tokenizer.json");
  Expected<text::SideFiles> beside = text::SideFiles::read(directory);
  if (!beside)
    return beside.takeError();
  if (sys::fs::exists(json))
    return text::openTokenizerJson(json, *beside);
  std::string model = inside(directory, "tokenizer.model");
  if (sys::fs::exists(model) && beside->isThere)
    return text::openSentencePiece(model, configuredBos(directory), *beside);
  if (sys::fs::exists(model))
    return openSentencePiece(model, configuredBos(directory));
  return makeError(directory + ": has no tokenizer.json and no tokenizer.model: give token ids "
                               "instead of text");
}

Expected<std::vector<int64_t>> ctxc::encodePrompt(const Tokenizer &tokenizer, StringRef text,
                                                  bool &isRepeated) {
  isRepeated = false;
  if (!tokenizer.addsSpecial())
    return tokenizer.encode(text, /*addSpecial=*/false);
  auto around = tokenizer.encode("", /*addSpecial=*/true);
  if (!around)
    return around;
  auto tokens = tokenizer.encode(text, /*addSpecial=*/true);
  if (!tokens || tokens->size() < 2 || around->empty() || (*tokens)[0] != around->front() ||
      (*tokens)[1] != around->front() || !text.starts_with(tokenizer.piece(around->front())))
    return tokens;
  isRepeated = true;
  tokens->erase(tokens->begin());
  return tokens;
}
