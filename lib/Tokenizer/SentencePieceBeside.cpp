#include "SentencePieceBeside.h"
#include "AddedTokens.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// Which parts of a text get a space in front, if they have none.
enum class Prefix { OfModel, Always, First, Never };

class SentencePieceBeside final : public Tokenizer {
public:
  std::unique_ptr<Tokenizer> model; // for text without added tokens
  AddedTokens added;
  Vocabulary vocabulary;
  std::vector<int64_t> before, after;
  Prefix prefix = Prefix::OfModel;

  Expected<std::vector<int64_t>> encode(StringRef text, bool addSpecial) const override;
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override;
  std::string piece(int64_t id) const override {
    const std::string *token = vocabulary.token(id);
    return token ? *token : "<id " + std::to_string(id) + ">";
  }
  std::string bytes(int64_t id) const override {
    return id < model->size() && piece(id) == model->piece(id) ? model->bytes(id) : piece(id);
  }
  int64_t size() const override { return vocabulary.size(); }
  bool addsSpecial() const override { return !before.empty() || !after.empty(); }
  void releaseMemory() override { model->releaseMemory(); }

private:
  Error encodePart(StringRef text, bool first, std::vector<int64_t> &ids) const;
};

} // namespace

/// Text between tokens that are found in the original; `first` where the whole text begins with it.
Error SentencePieceBeside::encodePart(StringRef text, bool first, std::vector<int64_t> &ids) const {
  for (const Part &part : added.splitNormalized(text)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    std::string inside = text.slice(part.range.begin, part.range.end).str();
    bool isPrefixed =
        prefix == Prefix::Always || (prefix == Prefix::First && first && part.range.begin == 0);
    if (isPrefixed && !StringRef(inside).starts_with(" ") &&
        !StringRef(inside).starts_with("\u2581"))
      inside = " " + inside;
    auto pieces = model->encode(inside, /*addSpecial=*/false);
    if (!pieces)
      return pieces.takeError();
    llvm::append_range(ids, *pieces);
  }
  return Error::success();
}

Expected<std::vector<int64_t>> SentencePieceBeside::encode(StringRef bytes, bool addSpecial) const {
  std::string text = validUtf8(bytes);
  std::vector<int64_t> ids;
  if (addSpecial)
    ids = before;
  for (const Part &part : added.splitRaw(text)) {
    auto [begin, end] = part.range;
    if (part.id)
      ids.push_back(*part.id);
    else if (Error error = encodePart(StringRef(text).slice(begin, end), begin == 0, ids))
      return std::move(error);
  }
  if (addSpecial)
    llvm::append_range(ids, after);
  return ids;
}

Expected<std::string> SentencePieceBeside::decode(ArrayRef<int64_t> ids) const {
  std::string text;
  while (!ids.empty()) {
    ArrayRef<int64_t> pieces =
        ids.take_while([&](int64_t id) { return id >= 0 && id < model->size(); });
    Expected<std::string> inside = model->decode(pieces);
    if (!inside)
      return inside;
    text += *inside;
    ids = ids.drop_front(pieces.size());
    if (ids.empty())
      break;
    const std::string *token = vocabulary.token(ids.front());
    if (!token)
      return makeError("token id " + Twine(ids.front()) + " is out of range; the tokenizer has " +
                       Twine(size()) + " ids");
    if (!added.isSpecial(*token))
      text += *token;
    ids = ids.drop_front();
  }
  bool isPrefixed = prefix == Prefix::Always || prefix == Prefix::First;
  if (isPrefixed && StringRef(text).starts_with(" "))
    text.erase(0, 1);
  return text;
}

static Prefix prefixOf(const SideFiles &beside) {
  if (!beside.isLlama)
    return Prefix::OfModel;
  if (!beside.addPrefixSpace.value_or(true))
    return Prefix::Never;
  return beside.isLegacy ? Prefix::Always : Prefix::First;
}

/// The model's control pieces (for Llama's class the unknown piece as well), and the files' tokens.
static Error findAdded(const SentencePieceModel &model, const SideFiles &beside, StringRef path,
                       SentencePieceBeside &tokenizer) {
  for (int64_t id = 0; id < tokenizer.model->size(); ++id)
    if (Error error = tokenizer.vocabulary.add(tokenizer.model->piece(id), id))
      return makeError(path + ": " + toString(std::move(error)));
  json::Array list;
  auto add = [&](int64_t id) {
    list.push_back(
        json::Object{{"id", id}, {"content", tokenizer.model->piece(id)}, {"special", true}});
  };
  for (int64_t id : model.controls)
    add(id);
  if (beside.isLlama && model.unknown >= 0)
    add(model.unknown);
  json::Value known = std::move(list), more = json::Array(beside.added);
  if (Error error =
          AddedTokens::read(Field(&known, (path + ": pieces").str()), nullptr, tokenizer.vocabulary)
              .moveInto(tokenizer.added))
    return error;
  return tokenizer.added.extend(Field(&more, ("the files beside " + path).str()), nullptr,
                                tokenizer.vocabulary);
}

Expected<std::unique_ptr<Tokenizer>>
text::openSentencePiece(StringRef path, std::optional<int64_t> bos, const SideFiles &beside) {
  Expected<SentencePieceModel> model = openSentencePieceModel(path, bos, beside.isLlama);
  if (!model)
    return model.takeError();
  auto tokenizer = std::make_unique<SentencePieceBeside>();
  tokenizer->model = std::move(model->tokenizer);
  tokenizer->prefix = prefixOf(beside);
  if (Error error = findAdded(*model, beside, path, *tokenizer))
    return std::move(error);
  if (beside.splitsSpecial)
    tokenizer->added.forgetSpecial();
  // transformers' class of Llama takes the tokens from its own config, and by default none.
  std::optional<int64_t> first, last;
  if (beside.isLlama)
    first = tokenizer->vocabulary.idOf(beside.bos.value_or("<s>"));
  else if (model->bos >= 0 && model->bos < tokenizer->size())
    first = model->bos;
  last = tokenizer->vocabulary.idOf(beside.eos.value_or("</s>"));
  if (beside.addBos.value_or(!beside.isLlama) && first)
    tokenizer->before.push_back(*first);
  if (beside.addEos.value_or(false) && last)
    tokenizer->after.push_back(*last);
  return tokenizer;
}
