// WordPiece (BERT): the longest token that a word begins with, and so on; a word that
// cannot be divided so is one unknown token.
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
      for (size_t i = ends.size(); i-- > 0 && ends[i] > at && !id;) {
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

} // namespace

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
  // With a hostile limit the cost would be quadratic in a word's length.
  model->maxCharacters = std::min<int64_t>(*most, 10'000);
  return model;
}
