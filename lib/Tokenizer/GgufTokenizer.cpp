// The tokenizer inside a GGUF file: its vocabulary is passed to sentencepiece as a model of its
// own, or written as the tokenizer.json that it came from. The file names the splits before
// byte-level BPE only by llama.cpp's names for them.
#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// ggml's kinds of tokens, which are sentencepiece's.
enum Kind { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

struct Vocabulary {
  std::vector<StringRef> tokens;
  std::vector<double> scores, kinds;
  std::optional<int64_t> bos, eos, unknown, padding;
};

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

std::string escapedSpaces(StringRef token) {
  std::string result;
  for (char c : token)
    if (c == ' ')
      result += "\u2581";
    else
      result += c;
  return result;
}

/// A ModelProto (sentencepiece_model.proto). The converter marks all tokens that look special as
/// control tokens; except for those that the file names, they are symbols that a text may contain.
std::string sentencePieceModel(const Vocabulary &v, const GgufFile &file) {
  Message model, trainer, normalizer;
  for (auto [i, token] : llvm::enumerate(v.tokens)) {
    Message piece;
    int64_t id = int64_t(i), kind = int64_t(v.kinds[i]);
    if (kind == Control && id != v.bos && id != v.eos && id != v.padding)
      kind = UserDefined;
    if (id == v.unknown)
      kind = Unknown;
    piece.text(1, kind == UserDefined ? escapedSpaces(token) : token.str());
    piece.real(2, float(v.scores[i]));
    piece.number(3, uint64_t(kind));
    model.text(1, piece.bytes);
  }
  trainer.number(3, 2); // BPE
  trainer.number(4, v.tokens.size());
  trainer.number(35, llvm::is_contained(v.kinds, double(Byte))); // byte_fallback
  unsigned field = 40, name = 45;                                // ids, and then the pieces
  for (std::optional<int64_t> id : {v.unknown, v.bos, v.eos, v.padding}) {
    trainer.number(field++, id ? uint64_t(*id) : ~uint64_t(0));
    if (id)
      trainer.text(name, v.tokens[*id]);
    ++name;
  }
  normalizer.text(1, "identity");
  normalizer.number(3, file.flag("tokenizer.ggml.add_space_prefix").value_or(true));
  normalizer.number(4, file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false));
  normalizer.number(5, 1); // escape_whitespaces
  model.text(2, trainer.bytes);
  model.text(3, normalizer.bytes);
  return std::move(model.bytes);
}

/// How a text is split before byte-level BPE, by llama.cpp's names.
struct PreTokenizer {
  StringLiteral name;
  StringLiteral pattern; ///< GPT-2's own where empty
  bool composed;         ///< after NFC
  bool ignoreMerges;
};

#define CTXC_WORDS(DIGITS)                                                                         \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" DIGITS                             \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

constexpr PreTokenizer preTokenizers[] = {
    {"gpt-2", "", false, false},
    {"llama-bpe", CTXC_WORDS("\\p{N}{1,3}"), false, true},
    {"qwen2", CTXC_WORDS("\\p{N}"), true, false},
};

json::Object byteLevel(bool useRegex) {
  return json::Object{{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", false},
                      {"use_regex", useRegex}};
}

std::string tokenizerJson(const Vocabulary &v, const std::vector<StringRef> &merges,
                          const PreTokenizer &split, bool addBos) {
  json::Object vocabulary;
  json::Array added, pairs;
  for (auto [i, token] : llvm::enumerate(v.tokens)) {
    vocabulary[token] = int64_t(i);
    if (v.kinds[i] == Control || v.kinds[i] == UserDefined)
      added.push_back(json::Object{{"id", int64_t(i)},
                                   {"content", token},
                                   {"single_word", false},
                                   {"lstrip", false},
                                   {"rstrip", false},
                                   {"normalized", false},
                                   {"special", v.kinds[i] == Control}});
  }
  for (StringRef merge : merges)
    pairs.push_back(merge);
  json::Value pre = byteLevel(/*useRegex=*/true);
  if (!split.pattern.empty())
    pre =
        json::Object{{"type", "Sequence"},
                     {"pretokenizers",
                      json::Array{json::Object{{"type", "Split"},
                                               {"pattern", json::Object{{"Regex", split.pattern}}},
                                               {"behavior", "Isolated"},
                                               {"invert", false}},
                                  byteLevel(/*useRegex=*/false)}}};
  json::Object root{{"version", "1.0"},
                    {"added_tokens", std::move(added)},
                    {"pre_tokenizer", std::move(pre)},
                    {"decoder", byteLevel(true)},
                    {"model", json::Object{{"type", "BPE"},
                                           {"ignore_merges", split.ignoreMerges},
                                           {"vocab", std::move(vocabulary)},
                                           {"merges", std::move(pairs)}}}};
  if (split.composed)
    root["normalizer"] = json::Object{{"type", "NFC"}};
  if (addBos && v.bos)
    root["post_processor"] = json::Object{
        {"type", "TemplateProcessing"},
        {"single",
         json::Array{
             json::Object{{"SpecialToken", json::Object{{"id", v.tokens[*v.bos]}, {"type_id", 0}}}},
             json::Object{{"Sequence", json::Object{{"id", "A"}, {"type_id", 0}}}}}},
        {"pair", json::Array{}},
        {"special_tokens",
         json::Object{
             {v.tokens[*v.bos], json::Object{{"id", v.tokens[*v.bos]},
                                             {"ids", json::Array{*v.bos}},
                                             {"tokens", json::Array{v.tokens[*v.bos]}}}}}}};
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(root));
  return text;
}

Expected<Vocabulary> readVocabulary(const GgufFile &file) {
  std::string path = file.file().path().str();
  Vocabulary v;
  auto tokens = file.texts("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    return makeError(path + ": has no 'tokenizer.ggml.tokens': give token ids instead of text");
  v.tokens = std::move(*tokens);
  v.scores = file.numbers("tokenizer.ggml.scores").value_or(std::vector<double>(v.tokens.size()));
  v.kinds =
      file.numbers("tokenizer.ggml.token_type").value_or(std::vector<double>(v.tokens.size(), 1));
  if (v.scores.size() != v.tokens.size() || v.kinds.size() != v.tokens.size())
    return makeError(path + ": has " + Twine(v.tokens.size()) + " tokens, " +
                     Twine(v.scores.size()) + " scores and " + Twine(v.kinds.size()) +
                     " token types; expected as many of each");
  for (double kind : v.kinds)
    if (!(kind >= Normal && kind <= Byte))
      return makeError(path + ": 'tokenizer.ggml.token_type' has an entry that is not from 1 to 6");
  for (auto [name, id] : {std::pair{"bos", &v.bos},
                          {"eos", &v.eos},
                          {"unknown", &v.unknown},
                          {"padding", &v.padding}}) {
    std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    *id = file.integer(key);
    if (*id && (**id < 0 || **id >= int64_t(v.tokens.size())))
      return makeError(path + ": key " + quoted(key) + " = " + Twine(**id) +
                       " is no token; there are " + Twine(v.tokens.size()));
  }
  return v;
}

} // namespace

Expected<std::unique_ptr<Tokenizer>> ctxc::openGgufTokenizer(StringRef path) {
  Expected<std::unique_ptr<GgufFile>> opened = GgufFile::open(path);
  if (!opened)
    return opened.takeError();
  const GgufFile &file = **opened;
  Expected<Vocabulary> vocabulary = readVocabulary(file);
  if (!vocabulary)
    return vocabulary.takeError();
  StringRef model = file.text("tokenizer.ggml.model").value_or("");
  if (model == "llama")
    return parseSentencePiece(sentencePieceModel(*vocabulary, file), path, vocabulary->bos);
  if (model != "gpt2")
    return makeError(path + ": key 'tokenizer.ggml.model' = " + quoted(model) +
                     " is not supported; llama and gpt2 are: give token ids instead of text");
  StringRef pre = file.text("tokenizer.ggml.pre").value_or("gpt-2");
  const PreTokenizer *split =
      llvm::find_if(preTokenizers, [&](const PreTokenizer &p) { return p.name == pre; });
  if (split == std::end(preTokenizers))
    return makeError(path + ": key 'tokenizer.ggml.pre' = " + quoted(pre) +
                     " is not supported; gpt-2, llama-bpe and qwen2 are: give token ids instead "
                     "of text");
  std::vector<StringRef> merges =
      file.texts("tokenizer.ggml.merges").value_or(std::vector<StringRef>());
  for (const auto &[key, texts] :
       {std::pair<const char *, ArrayRef<StringRef>>("tokenizer.ggml.tokens", vocabulary->tokens),
        {"tokenizer.ggml.merges", merges}})
    for (auto [i, text] : llvm::enumerate(texts))
      if (!json::isUTF8(text))
        return makeError(path + ": key " + quoted(key) + ": entry " + Twine(i) + ", " +
                         quoted(text) + ", is not UTF-8");
  std::string json =
      tokenizerJson(*vocabulary, merges, *split,
                    file.flag("tokenizer.ggml.add_bos_token").value_or(pre == "llama-bpe"));
  return parseTokenizerJson(json, path);
}
