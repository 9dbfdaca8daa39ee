#include "Model.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

Error Vocabulary::addBesideModel(StringRef token, int64_t id) {
  return add(ids.contains(token) ? ids : idsBesideModel, token, id);
}

Error Vocabulary::add(StringMap<int32_t> &to, StringRef token, int64_t id) {
  if (id < 0 || id >= maxIds)
    return makeError("the id " + Twine(id) + " of " + quoted(token) + " is not below " +
                     Twine(maxIds));
  if (id >= size())
    tokens.resize(id + 1);
  if (tokens[id] && *tokens[id] != token)
    return makeError("the id " + Twine(id) + " is given to " + quoted(*tokens[id]) + " and to " +
                     quoted(token));
  auto [entry, added] = to.try_emplace(token, int32_t(id));
  if (!added && entry->second != id)
    return makeError(quoted(token) + " has the ids " + Twine(entry->second) + " and " + Twine(id));
  tokens[id] = token.str();
  return Error::success();
}

std::optional<int32_t> Vocabulary::find(StringRef token) const {
  auto entry = ids.find(token);
  return entry == ids.end() ? std::nullopt : std::optional<int32_t>(entry->second);
}

std::optional<int32_t> Vocabulary::idOf(StringRef token) const {
  auto entry = idsBesideModel.find(token);
  return entry == idsBesideModel.end() ? find(token) : std::optional<int32_t>(entry->second);
}

const std::string *Vocabulary::token(int64_t id) const {
  return id >= 0 && id < size() && tokens[id] ? &*tokens[id] : nullptr;
}

ByteTokens text::noByteTokens() {
  ByteTokens bytes;
  bytes.fill(-1);
  return bytes;
}

ByteTokens text::byteTokens(const Vocabulary &vocabulary) {
  ByteTokens bytes;
  for (unsigned b = 0; b < 256; ++b) {
    static constexpr char digits[] = "0123456789ABCDEF";
    bytes[b] =
        vocabulary.find(std::string("<0x") + digits[b >> 4] + digits[b & 15] + ">").value_or(-1);
  }
  return bytes;
}

/// [["token", score], …], whose ids are their places.
static Error readScores(StrictJson &reader, ModelText &model) {
  return reader.array([&]() -> Error {
    std::string place = model.place + ".vocab[" + std::to_string(model.scores.size()) + "]";
    Expected<StringRef> raw = reader.raw();
    if (!raw)
      return raw.takeError();
    Expected<json::Value> value = parseStrictJson(*raw, place);
    if (!value)
      return value.takeError();
    const json::Array *pair = value->getAsArray();
    std::optional<StringRef> token;
    std::optional<double> score;
    if (pair && pair->size() == 2) {
      token = (*pair)[0].getAsString();
      score = (*pair)[1].getAsNumber();
    }
    if (!token || !score)
      return makeError(place + ": expected a token and its score");
    if (Error error = model.vocabulary.add(*token, model.scores.size()))
      return makeError(place + ": " + toString(std::move(error)));
    model.scores.push_back(*score);
    return Error::success();
  });
}

static Error readVocabulary(StrictJson &reader, ModelText &model) {
  if (reader.next() == '[')
    return readScores(reader, model);
  return reader.object([&](StringRef token) -> Error {
    Expected<int64_t> id = reader.nonNegativeInteger();
    if (!id)
      return id.takeError();
    if (Error error = model.vocabulary.add(token, *id))
      return makeError(model.place + ".vocab: " + toString(std::move(error)));
    return Error::success();
  });
}

/// "a b" or ["a", "b"].
static Expected<std::pair<std::string, std::string>> readMerge(StrictJson &reader,
                                                               const Twine &place) {
  std::vector<std::string> parts;
  if (reader.next() == '[') {
    Error error = reader.array([&]() -> Error {
      Expected<StringRef> part = reader.string();
      if (!part)
        return part.takeError();
      parts.push_back(part->str());
      return Error::success();
    });
    if (error)
      return std::move(error);
  } else {
    Expected<StringRef> both = reader.string();
    if (!both)
      return both.takeError();
    SmallVector<StringRef> split;
    both->split(split, ' ');
    parts.assign(split.begin(), split.end());
  }
  if (parts.size() != 2)
    return makeError(place + ": " + Twine(parts.size()) + " parts, expected 2");
  return std::make_pair(std::move(parts[0]), std::move(parts[1]));
}

static Error readMerges(StrictJson &reader, ModelText &model) {
  return reader.array([&]() -> Error {
    auto merge = readMerge(reader, model.place + ".merges[" + Twine(model.merges.size()) + "]");
    if (!merge)
      return merge.takeError();
    model.merges.push_back(std::move(*merge));
    return Error::success();
  });
}

Expected<ModelText> ModelText::read(StrictJson &reader, StringRef file) {
  ModelText model;
  model.place = (file + ": model").str();
  Error error = reader.object([&](StringRef key) -> Error {
    if (key == "vocab")
      return readVocabulary(reader, model);
    if (key == "merges")
      return readMerges(reader, model);
    Expected<StringRef> raw = reader.raw();
    if (!raw)
      return raw.takeError();
    Expected<json::Value> value = parseStrictJson(*raw, (Twine(model.place) + "." + key).str());
    if (!value)
      return value.takeError();
    model.settings[key.str()] = std::move(*value);
    return Error::success();
  });
  if (error)
    return std::move(error);
  return model;
}

Expected<std::unique_ptr<Model>> text::makeModel(ModelText text) {
  json::Value settings = json::Object(text.settings);
  Field field(&settings, text.place);
  // Old files do not name the type: only BPE has merges, only Unigram scores.
  bool hasScores = !text.scores.empty();
  Expected<std::string> type = field["type"].string(hasScores             ? "Unigram"
                                                    : text.merges.empty() ? "WordPiece"
                                                                          : "BPE");
  if (!type)
    return type.takeError();
  if (hasScores != (*type == "Unigram"))
    return field["vocab"].fail(StringRef("expected ") +
                               (hasScores ? "an object of ids" : "a list of tokens and scores"));
  if (*type == "Unigram")
    return makeUnigram(std::move(text));
  if (*type == "BPE")
    return makeBpe(std::move(text));
  if (*type == "WordPiece")
    return makeWordPiece(std::move(text));
  if (*type == "WordLevel")
    return makeWordLevel(std::move(text));
  return field["type"].fail("the model " + quoted(*type) +
                            " is not supported; expected BPE, WordPiece, WordLevel or Unigram");
}
