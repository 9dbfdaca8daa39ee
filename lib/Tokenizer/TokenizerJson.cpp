// tokenizer.json: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder,
// in the order in which a text passes through them.
#include "AddedTokens.h"
#include "Decoder.h"
#include "Model.h"
#include "Normalizer.h"
#include "OwnClasses.h"
#include "PostProcessor.h"
#include "PreTokenizer.h"
#include "SideFiles.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "ctxc/Tokenizer/TokenizerKeys.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

class TokenizerJson final : public Tokenizer {
public:
  std::unique_ptr<Normalizer> normalizer;     // may be null
  std::unique_ptr<PreTokenizer> preTokenizer; // may be null
  std::unique_ptr<Decoder> decoder;           // may be null
  std::unique_ptr<Model> model;               // its vocabulary has the added tokens too
  AddedTokens added;
  PostProcessor around;

  Expected<std::vector<int64_t>> encode(StringRef text, bool addSpecial) const override;
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override;
  std::string piece(int64_t id) const override {
    const std::string *token = model->vocabulary.token(id);
    return token ? *token : "<id " + std::to_string(id) + ">";
  }
  std::string bytes(int64_t id) const override {
    const std::string *shown = added.shown(id);
    std::string token = shown ? *shown : piece(id);
    if (added.isSpecial(piece(id)) || !model->vocabulary.token(id))
      return token;
    return decoder ? decoder->bytesOf(token) : " " + token; // as decode joins them
  }
  int64_t size() const override { return model->vocabulary.size(); }
  bool addsSpecial() const override { return !around.before.empty() || !around.after.empty(); }

private:
  Error encodePart(std::string text, bool first, std::vector<int64_t> &ids) const;
  Error encodePiece(Piece piece, std::vector<int64_t> &ids) const;
};

} // namespace

Error TokenizerJson::encodePiece(Piece piece, std::vector<int64_t> &ids) const {
  std::vector<Piece> pieces;
  if (!preTokenizer)
    pieces.push_back(std::move(piece));
  else if (Error error = preTokenizer->split(std::move(piece), pieces))
    return error;
  for (const Piece &each : pieces)
    model->tokenize(each.text, ids);
  return Error::success();
}

/// Text between added tokens; `first` where the whole text begins with it.
Error TokenizerJson::encodePart(std::string text, bool first, std::vector<int64_t> &ids) const {
  if (normalizer) {
    Expected<std::string> normalized = normalizer->apply(std::move(text));
    if (!normalized)
      return normalized.takeError();
    text = std::move(*normalized);
  }
  for (const Part &part : added.splitNormalized(text)) {
    auto [begin, end] = part.range;
    if (part.id)
      ids.push_back(*part.id);
    else if (Error error = encodePiece({text.substr(begin, end - begin), first && begin == 0}, ids))
      return error;
  }
  return Error::success();
}

Expected<std::vector<int64_t>> TokenizerJson::encode(StringRef bytes, bool addSpecial) const {
  std::string text = validUtf8(bytes);
  std::vector<int64_t> ids;
  if (addSpecial)
    ids = around.before;
  for (const Part &part : added.splitRaw(text)) {
    auto [begin, end] = part.range;
    if (part.id)
      ids.push_back(*part.id);
    else if (Error error = encodePart(text.substr(begin, end - begin), begin == 0, ids))
      return std::move(error);
  }
  if (addSpecial)
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  return ids;
}

Expected<std::string> TokenizerJson::decode(ArrayRef<int64_t> ids) const {
  std::vector<std::string> tokens;
  for (int64_t id : ids) {
    const std::string *token = model->vocabulary.token(id);
    if (!token)
      return makeError("token id " + Twine(id) + " is out of range; the tokenizer has " +
                       Twine(size()) + " ids" + (id >= 0 && id < size() ? ", not this one" : ""));
    const std::string *shown = added.shown(id);
    if (!added.isSpecial(*token))
      tokens.push_back(shown ? *shown : *token);
  }
  StringRef between = decoder ? "" : " "; // as the tokenizers package joins without a decoder
  if (decoder) {
    Expected<std::vector<std::string>> decoded = decoder->apply(std::move(tokens));
    if (!decoded)
      return decoded.takeError();
    tokens = std::move(*decoded);
  }
  return join(tokens, between);
}

static Error readMembers(StringRef text, StringRef path, ModelText &model, json::Object &members) {
  StrictJson reader(text, path);
  Error error = reader.object([&](StringRef key) -> Error {
    if (key == "model") {
      Expected<ModelText> read = ModelText::read(reader, path);
      if (!read)
        return read.takeError();
      model = std::move(*read);
      return Error::success();
    }
    Expected<StringRef> raw = reader.raw();
    if (!raw)
      return raw.takeError();
    Expected<json::Value> value = parseStrictJson(*raw, (path + ": " + key).str());
    if (!value)
      return value.takeError();
    members[key.str()] = std::move(*value);
    return Error::success();
  });
  return error ? std::move(error) : reader.end();
}

static Error build(const Field &root, ModelText text, const SideFiles &beside,
                   TokenizerJson &tokenizer) {
  if (Error error = root.followsTable(tokenizerJsonKeys))
    return error;
  Expected<std::string> version = root["version"].string("1.0");
  if (!version)
    return version.takeError();
  if (*version != "1.0")
    return root["version"].fail("found " + quoted(*version) + ", expected '1.0'");
  if (Error error = makeModel(std::move(text)).moveInto(tokenizer.model))
    return error;
  if (Error error = readNormalizer(root["normalizer"]).moveInto(tokenizer.normalizer))
    return error;
  if (Error error = readPreTokenizer(root["pre_tokenizer"]).moveInto(tokenizer.preTokenizer))
    return error;
  if (Error error = readDecoder(root["decoder"]).moveInto(tokenizer.decoder))
    return error;
  Vocabulary &vocabulary = tokenizer.model->vocabulary;
  if (Error error = AddedTokens::read(root["added_tokens"], tokenizer.normalizer.get(), vocabulary)
                        .moveInto(tokenizer.added))
    return error;
  json::Value more = json::Array(beside.added);
  if (Error error = tokenizer.added.extend(Field(&more, "the files beside " + root.place()),
                                           tokenizer.normalizer.get(), vocabulary))
    return error;
  if (beside.splitsSpecial)
    tokenizer.added.forgetSpecial();
  return PostProcessor::read(root["post_processor"], vocabulary).moveInto(tokenizer.around);
}

static Expected<std::unique_ptr<Tokenizer>> parse(StringRef text, StringRef path,
                                                  const SideFiles &beside) {
  if (Error error = checkUtf8(text, path))
    return std::move(error);
  ModelText model;
  json::Object members;
  if (Error error = readMembers(text, path, model, members))
    return std::move(error);
  if (model.place.empty())
    return makeError(path + ": has no model");
  if (Error error = applyOwnClass(members, model, beside))
    return std::move(error);
  json::Value value = std::move(members);
  auto tokenizer = std::make_unique<TokenizerJson>();
  if (Error error = build(Field(&value, path.str() + ":"), std::move(model), beside, *tokenizer))
    return std::move(error);
  return tokenizer;
}

Expected<std::unique_ptr<Tokenizer>> text::openTokenizerJson(StringRef path,
                                                             const SideFiles &beside) {
  Expected<std::string> text = readSmallFile(path, 256 << 20);
  if (!text)
    return text.takeError();
  return parse(*text, path, beside);
}

Expected<std::unique_ptr<Tokenizer>> ctxc::openTokenizerJson(StringRef path) {
  return text::openTokenizerJson(path, SideFiles());
}

Expected<std::unique_ptr<Tokenizer>> ctxc::parseTokenizerJson(StringRef text, StringRef path) {
  return parse(text, path, SideFiles());
}
