// WordPiece (BERT): the longest token that a word begins with, and so on; a word that
// cannot be divided so is one unknown token. WordLevel: a word is one token, or the unknown one.
#include "Model.h"
#include "Unicode.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

class WordPiece final : public Model {
public:
  int32_t unknown = 0;
  std::string prefix;
  int64_t maxCharacters = 100;
  size_t longest =
      0; ///< of the vocabulary's tokens, in bytes: no longer part of a word is looked up

  void tokenize(StringRef piece, std::vector<int64_t> &ids) const override {
    std::vector<size_t> ends; // of characters
    forEachCodePoint(piece, [&](char32_t, size_t at, size_t size) { ends.push_back(at + size); });
    if (int64_t(ends.size()) > maxCharacters) {
      ids.push_back(unknown);
      return;
    }
    size_t from = ids.size(), at = 0;
    while (at < piece.size()) {
      std::optional<int32_t> id;
      size_t end = 0;
      auto beyond = std::upper_bound(ends.begin(), ends.end(), at + longest);
      for (size_t i = beyond - ends.begin(); i-- > 0 && ends[i] > at && !id;) {
        end = ends[i];
        id = vocabulary.find((at ? prefix : "") + piece.slice(at, end).str());
      }
      if (!id) {
        ids.resize(from);
        ids.push_back(unknown);
        return;
      }
      ids.push_back(*id);
      at = end;
    }
  }
};

class WordLevel final : public Model {
public:
  int32_t unknown = 0;

  void tokenize(StringRef piece, std::vector<int64_t> &ids) const override {
    ids.push_back(vocabulary.find(piece).value_or(unknown));
  }
};

} // namespace

Expected<std::unique_ptr<Model>> text::makeWordLevel(ModelText text) {
  json::Value settings = std::move(text.settings);
  Field field(&settings, text.place);
  if (Error error = field.onlyKeys({"type", "unk_token"}))
    return std::move(error);
  Expected<std::string> unknown = field["unk_token"].string();
  if (!unknown)
    return unknown.takeError();
  auto model = std::make_unique<WordLevel>();
  model->vocabulary = std::move(text.vocabulary);
  std::optional<int32_t> id = model->vocabulary.find(*unknown);
  if (!id) // each unknown word would be an error
    return field["unk_token"].fail(quoted(*unknown) + " is not in the vocabulary");
  model->unknown = *id;
  return model;
}

Expected<std::unique_ptr<Model>> text::makeWordPiece(ModelText text) {
  json::Value settings = std::move(text.settings);
  Field field(&settings, text.place);
  if (Error error = field.onlyKeys(
          {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"}))
    return std::move(error);
  auto model = std::make_unique<WordPiece>();
  model->vocabulary = std::move(text.vocabulary);
  Expected<std::string> prefix = field["continuing_subword_prefix"].string("##");
  if (!prefix)
    return prefix.takeError();
  Expected<int64_t> most = field["max_input_chars_per_word"].count(100);
  if (!most)
    return most.takeError();
  Expected<std::string> unknown = field["unk_token"].string("[UNK]");
  if (!unknown)
    return unknown.takeError();
  std::optional<int32_t> id = model->vocabulary.find(*unknown);
  if (!id)
    return field["unk_token"].fail(quoted(*unknown) + " is not in the vocabulary");
  model->unknown = *id;
  model->prefix = *prefix;
  model->maxCharacters = *most;
  for (int64_t id = 0; id < model->vocabulary.size(); ++id)
    if (const std::string *token = model->vocabulary.token(id))
      model->longest = std::max(model->longest, token->size());
  return model;
}
