#include "ctxc/Import/Tokenizer.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <sentencepiece_processor.h>

using namespace llvm;
using namespace ctxc;

struct Tokenizer::Impl {
  sentencepiece::SentencePieceProcessor processor;
  std::optional<int64_t> bos;
};

Tokenizer::Tokenizer() : impl(std::make_unique<Impl>()) {}
Tokenizer::~Tokenizer() = default;

static std::string inside(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

/// bos_token_id of config.json, or of its text_config; none on any doubt.
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
  std::string path = inside(directory, "tokenizer.model");
  if (!sys::fs::exists(path)) {
    bool json = sys::fs::exists(inside(directory, "tokenizer.json"));
    return makeError(directory + ": has no tokenizer.model" +
                     (json ? "; tokenizer.json is there, but only sentencepiece models are read"
                           : "") +
                     ": give token ids with --tokens");
  }
  Expected<std::string> bytes = readSmallFile(path, 256 << 20);
  if (!bytes)
    return bytes.takeError();
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer);
  sentencepiece::util::Status status = tokenizer->impl->processor.LoadFromSerializedProto(*bytes);
  if (!status.ok() || tokenizer->size() == 0)
    return makeError(path + ": is not a sentencepiece model" +
                     (status.ok() ? "" : Twine(": ") + status.error_message()));
  std::optional<int64_t> bos = configuredBos(directory);
  if (!bos || *bos < 0 || *bos >= tokenizer->size())
    bos = tokenizer->impl->processor.bos_id();
  if (*bos >= 0)
    tokenizer->impl->bos = bos;
  return tokenizer;
}

Expected<std::vector<int64_t>> Tokenizer::encode(StringRef text, bool addBos) const {
  std::vector<int> pieces;
  sentencepiece::util::Status status =
      impl->processor.Encode(absl::string_view(text.data(), text.size()), &pieces);
  if (!status.ok())
    return makeError(Twine("the text cannot be tokenized: ") + status.error_message());
  std::vector<int64_t> ids;
  if (addBos && !impl->bos)
    return makeError("tokenizer.model has no begin-of-sequence piece, and config.json no "
                     "bos_token_id: give token ids with --tokens");
  if (addBos)
    ids.push_back(*impl->bos);
  ids.insert(ids.end(), pieces.begin(), pieces.end());
  return ids;
}

Expected<std::string> Tokenizer::decode(ArrayRef<int64_t> ids) const {
  for (int64_t id : ids)
    if (id < 0 || id >= size())
      return makeError("token id " + Twine(id) + " is out of range; the tokenizer has " +
                       Twine(size()) + " pieces");
  std::string text;
  sentencepiece::util::Status status =
      impl->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok())
    return makeError(Twine("the tokens cannot be decoded: ") + status.error_message());
  return text;
}

std::string Tokenizer::piece(int64_t id) const {
  if (id < 0 || id >= size())
    return "<id " + std::to_string(id) + ">";
  return impl->processor.IdToPiece(int(id));
}

int64_t Tokenizer::size() const { return impl->processor.GetPieceSize(); }

std::optional<int64_t> Tokenizer::bosId() const { return impl->bos; }
