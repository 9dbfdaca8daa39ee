// The tokenizer inside a GGUF file. Its symbols are found in a text first, the text between them is
// left to the vocabulary's kind of model.
#include "AddedTokens.h"
#include "GgufTokenizers.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// llama.cpp strips no other white space.
bool isAsciiSpace(char32_t c) { return c < 0x80 && isWhiteSpace(c); }

class GgufTokenizer final : public Tokenizer {
public:
  std::unique_ptr<Tokenizer> model; // for text without symbols
  AddedTokens symbols;
  std::vector<int64_t> before, after;

  Expected<std::vector<int64_t>> encode(StringRef bytes, bool addSpecial) const override {
    std::string text = validUtf8(bytes);
    std::vector<int64_t> ids;
    if (addSpecial)
      ids = before;
    for (const Part &part : symbols.splitRaw(text, isAsciiSpace)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      auto inside = model->encode(StringRef(text).slice(part.range.begin, part.range.end), false);
      if (!inside)
        return inside;
      append_range(ids, *inside);
    }
    if (addSpecial)
      append_range(ids, after);
    return ids;
  }
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override { return model->decode(ids); }
  std::string piece(int64_t id) const override { return model->piece(id); }
  std::string bytes(int64_t id) const override { return model->bytes(id); }
  int64_t size() const override { return model->size(); }
  bool addsSpecial() const override { return !before.empty() || !after.empty(); }
};

} // namespace

json::Array text::symbolsOf(const GgufVocabulary &v) {
  json::Array added;
  for (int64_t id = 0; id < v.size(); ++id)
    if (v.isSymbol(id))
      added.push_back(json::Object{{"id", id},
                                   {"content", v.tokens[id]},
                                   {"single_word", false},
                                   {"lstrip", v.stripsLeft(id)},
                                   {"rstrip", v.stripsRight(id)},
                                   {"normalized", false},
                                   {"special", v.kinds[id] != TokenKind::UserDefined}});
  return added;
}

Error text::checkTexts(StringRef path, StringRef key, ArrayRef<StringRef> texts) {
  for (auto [i, text] : llvm::enumerate(texts))
    if (!json::isUTF8(text))
      return makeError(path + ": key " + quoted(key) + ": entry " + Twine(i) + ", " + quoted(text) +
                       ", is not UTF-8");
  return Error::success();
}

Expected<std::unique_ptr<Tokenizer>> ctxc::openGgufTokenizer(StringRef path) {
  Expected<std::unique_ptr<GgufFile>> file = GgufFile::open(path);
  if (!file)
    return file.takeError();
  Expected<GgufVocabulary> v = GgufVocabulary::read(**file);
  if (!v)
    return v.takeError();
  std::vector<StringRef> tokens(v->tokens.begin(), v->tokens.end());
  if (Error error = checkTexts(path, "tokenizer.ggml.tokens", tokens))
    return std::move(error);
  static constexpr Expected<std::unique_ptr<Tokenizer>> (*open[])(
      const GgufVocabulary &, const GgufFile &) = {openGgufSentencePiece, openGgufWordPiece,
                                                   openGgufBytePairs, openGgufUnigram};
  auto tokenizer = std::make_unique<GgufTokenizer>();
  if (Error error = open[int(v->model)](*v, **file).moveInto(tokenizer->model))
    return std::move(error);
  json::Value symbols = symbolsOf(*v);
  Vocabulary vocabulary;
  for (int64_t id = 0; id < v->size(); ++id)
    if (Error error = v->isSymbol(id) ? vocabulary.add(v->tokens[id], id) : Error::success())
      return makeError(path + ": " + toString(std::move(error)));
  if (Error error =
          AddedTokens::read(Field(&symbols, path.str() + ": symbols"), nullptr, vocabulary)
              .moveInto(tokenizer->symbols))
    return std::move(error);
  tokenizer->before = v->before();
  tokenizer->after = v->after();
  tokenizer->ends = v->ends;
  tokenizer->warning = v->warning;
  return tokenizer;
}
