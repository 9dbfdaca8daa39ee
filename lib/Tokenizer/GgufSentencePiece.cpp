// A GGUF file's vocabulary as a sentencepiece model, and the tokenizer that finds its symbols in a
// text before the model reads the text between them.
#include "AddedTokens.h"
#include "GgufTokenizers.h"
#include "Unicode.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// The part of protocol buffers' wire format that a sentencepiece model needs.
class Message {
public:
  std::string bytes;

  void number(unsigned field, uint64_t x) {
    varint(field << 3);
    varint(x);
  }
  void real(unsigned field, float x) {
    varint(field << 3 | 5);
    uint32_t bits = bit_cast<uint32_t>(x);
    for (int i = 0; i < 4; ++i)
      bytes.push_back(char(bits >> (8 * i)));
  }
  void text(unsigned field, StringRef x) {
    varint(field << 3 | 2);
    varint(x.size());
    bytes += x;
  }

private:
  void varint(uint64_t x) {
    for (; x >= 0x80; x >>= 7)
      bytes.push_back(char(x | 0x80));
    bytes.push_back(char(x));
  }
};

} // namespace

static std::string escapedSpaces(StringRef token) {
  std::string result;
  for (char c : token)
    if (c == ' ')
      result += "\u2581";
    else
      result += c;
  return result;
}

/// A model has one unknown token.
static TokenKind kindOf(const GgufVocabulary &v, int64_t id) {
  if (id == v.unknown)
    return TokenKind::Unknown;
  return v.kinds[id] == TokenKind::Unknown ? TokenKind::Control : v.kinds[id];
}

/// A ModelProto (sentencepiece_model.proto).
static Expected<std::string> modelOf(const GgufVocabulary &v, const GgufFile &file) {
  Expected<bool> prefix = ggufFlag(file, "tokenizer.ggml.add_space_prefix", true);
  if (!prefix)
    return prefix.takeError();
  Message model, trainer, normalizer;
  for (auto [i, token] : llvm::enumerate(v.tokens)) {
    Message piece;
    TokenKind kind = kindOf(v, int64_t(i));
    piece.text(1, kind == TokenKind::UserDefined ? escapedSpaces(token) : token);
    piece.real(2, float(v.scores[i]));
    piece.number(3, uint64_t(kind));
    model.text(1, piece.bytes);
  }
  trainer.number(3, 2); // BPE
  trainer.number(4, v.tokens.size());
  trainer.number(35, llvm::is_contained(v.kinds, TokenKind::Byte)); // byte_fallback
  unsigned field = 40, name = 45;                                   // ids, and then the pieces
  for (std::optional<int64_t> id : {v.unknown, v.bos, v.eos, v.padding}) {
    trainer.number(field++, id ? uint64_t(*id) : ~uint64_t(0));
    if (id)
      trainer.text(name, v.tokens[*id]);
    ++name;
  }
  normalizer.text(1, "identity");
  normalizer.number(3, *prefix);
  normalizer.number(4, 0); // remove_extra_whitespaces: llama.cpp reads it for Unigram alone
  normalizer.number(5, 1); // escape_whitespaces
  model.text(2, trainer.bytes);
  model.text(3, normalizer.bytes);
  return std::move(model.bytes);
}

Expected<std::unique_ptr<Tokenizer>> text::openGgufSentencePiece(const GgufVocabulary &v,
                                                                 const GgufFile &file) {
  Expected<std::string> bytes = modelOf(v, file);
  if (!bytes)
    return bytes.takeError();
  return parseSentencePiece(*bytes, file.file().path(), std::nullopt);
}
