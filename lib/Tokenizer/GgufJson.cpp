// GGUF vocabularies of byte pairs, word pieces and Unigram, as the tokenizer.json that they came
// from.
#include "GgufTokenizers.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

static json::Object typed(StringRef type, json::Object members = {}) {
  members["type"] = type;
  return members;
}

static json::Object sequence(StringRef key, json::Array steps) {
  return typed("Sequence", json::Object{{key, std::move(steps)}});
}

static json::Object byteLevel(bool useRegex) {
  return typed(
      "ByteLevel",
      json::Object{{"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", useRegex}});
}

static json::Object replace(StringRef pattern, StringRef content) {
  return typed("Replace",
               json::Object{{"pattern", json::Object{{"String", pattern}}}, {"content", content}});
}

static json::Object replaceAll(StringRef expression, StringRef content) {
  return typed("Replace", json::Object{{"pattern", json::Object{{"Regex", expression.str()}}},
                                       {"content", content.str()}});
}

static json::Object vocabularyOf(const GgufVocabulary &v) {
  json::Object vocabulary;
  for (auto [id, token] : enumerate(v.tokens))
    vocabulary[token] = int64_t(id);
  return vocabulary;
}

/// "a b": the first part may begin with a space.
static json::Array mergesOf(ArrayRef<StringRef> merges) {
  json::Array pairs;
  for (StringRef merge : merges) {
    size_t space = merge.find(' ', 1);
    pairs.push_back(json::Array{merge.take_front(space), merge.substr(space).drop_front()});
  }
  return pairs;
}

static json::Value preTokenizer(const GgufSplit &split, bool inBytes) {
  json::Array steps;
  for (StringRef expression : split.expressions)
    steps.push_back(typed("Split", json::Object{{"pattern", json::Object{{"Regex", expression}}},
                                                {"behavior", "Isolated"},
                                                {"invert", false}}));
  if (inBytes)
    steps.push_back(byteLevel(/*useRegex=*/false));
  return sequence("pretokenizers", std::move(steps));
}

static json::Object bytePairs(const GgufVocabulary &v, ArrayRef<StringRef> merges) {
  bool inBytes = !v.split->has(GgufSplit::RawSpaces);
  json::Object root{
      {"pre_tokenizer", preTokenizer(*v.split, inBytes)},
      {"model", typed("BPE", json::Object{{"ignore_merges", v.split->has(GgufSplit::IgnoreMerges)},
                                          {"byte_fallback", !inBytes},
                                          {"unknown_separates", true},
                                          {"vocab", vocabularyOf(v)},
                                          {"merges", mergesOf(merges)}})}};
  if (!inBytes)
    root["normalizer"] = replace(" ", "\u2581");
  root["decoder"] =
      inBytes ? byteLevel(true)
              : sequence("decoders",
                         json::Array{replace("\u2581", " "), typed("ByteFallback"), typed("Fuse")});
  return root;
}

/// Symbols are in the vocabulary so that they are decoded; GgufTokenizer finds them in a text.
static Expected<std::unique_ptr<Tokenizer>> openJson(json::Object root, const GgufVocabulary &v,
                                                     StringRef path) {
  root["version"] = "1.0";
  root["added_tokens"] = symbolsOf(v);
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(root));
  return parseTokenizerJson(text, path);
}

Expected<std::unique_ptr<Tokenizer>> text::openGgufBytePairs(const GgufVocabulary &v,
                                                             const GgufFile &file) {
  StringRef path = file.file().path(), key = "tokenizer.ggml.merges";
  if (!file.metadata().count(key.str()))
    return makeError(path + ": has no key " + quoted(key) +
                     ", without which byte pairs are not joined: give token ids instead of text");
  std::vector<StringRef> merges = file.texts(key).value_or(std::vector<StringRef>());
  if (Error error = checkTexts(path, key, merges))
    return std::move(error);
  for (auto [i, merge] : enumerate(merges))
    if (merge.find(' ', 1) == StringRef::npos)
      return makeError(path + ": key " + quoted(key) + ": entry " + Twine(i) + ", " +
                       quoted(merge) + ", is not two tokens");
  return openJson(bytePairs(v, merges), v, path);
}

/// A word begins with U+2581 in the file, as what continues one begins with "##" elsewhere.
static json::Object wordVocabulary(const GgufVocabulary &v) {
  json::Object vocabulary;
  for (auto [id, token] : enumerate(v.tokens)) {
    StringRef word = token;
    bool begins = word.consume_front("\u2581");
    vocabulary[begins || v.isSymbol(id) || id == v.unknown ? word.str() : "##" + token] =
        int64_t(id);
  }
  return vocabulary;
}

Expected<std::unique_ptr<Tokenizer>> text::openGgufWordPiece(const GgufVocabulary &v,
                                                             const GgufFile &file) {
  if (!v.unknown)
    return makeError(file.file().path() + ": has no 'tokenizer.ggml.unknown_token_id': give token "
                                          "ids instead of text");
  if (v.kinds[*v.unknown] == TokenKind::Normal)
    return makeError(file.file().path() + ": key 'tokenizer.ggml.unknown_token_id' = " +
                     Twine(*v.unknown) + " is a piece of words; expected a symbol");
  Expected<bool> lower = ggufFlag(file, "tokenizer.ggml.normalizer.lowercase", true);
  if (!lower)
    return lower.takeError();
  Expected<bool> accents = ggufFlag(file, "tokenizer.ggml.normalizer.strip_accents", *lower);
  if (!accents)
    return accents.takeError();
  // llama.cpp sees white space before control characters, takes all marks for accents, and keeps
  // of a Hangul syllable only the first consonant.
  json::Array steps{replaceAll("\\s", " ")};
  if (*accents) {
    constexpr char32_t syllables = 0xac00, consonants = 0x1100, count = 19, ofEach = 588;
    for (char32_t i = 0; i < count; ++i) {
      std::string range = "[", consonant;
      append(range, syllables + i * ofEach);
      range += "-";
      append(range, syllables + (i + 1) * ofEach - 1);
      append(consonant, consonants + i);
      steps.push_back(replaceAll(range + "]", consonant));
    }
    steps.push_back(typed("NFD"));
    steps.push_back(replaceAll("\\p{M}", ""));
  }
  steps.push_back(typed("BertNormalizer", json::Object{{"clean_text", true},
                                                       {"handle_chinese_chars", true},
                                                       {"strip_accents", false},
                                                       {"lowercase", *lower}}));
  json::Object root{
      {"normalizer", sequence("normalizers", std::move(steps))},
      {"pre_tokenizer", typed("BertPreTokenizer")},
      {"decoder", typed("WordPiece", json::Object{{"prefix", "##"}, {"cleanup", true}})},
      {"model", typed("WordPiece", json::Object{{"unk_token", v.tokens[*v.unknown]},
                                                {"continuing_subword_prefix", "##"},
                                                {"max_input_chars_per_word", 1 << 30},
                                                {"vocab", wordVocabulary(v)}})}};
  return openJson(std::move(root), v, file.file().path());
}

/// A token that is not a normal one gets at least the lowest score of the normal ones.
static json::Array scoredVocabulary(const GgufVocabulary &v) {
  double least = std::numeric_limits<double>::infinity();
  for (int64_t id = 0; id < v.size(); ++id)
    if (v.kinds[id] == TokenKind::Normal)
      least = std::min(least, v.scores[id]);
  json::Array vocabulary;
  for (int64_t id = 0; id < v.size(); ++id) {
    bool isNormal = v.kinds[id] == TokenKind::Normal;
    vocabulary.push_back(
        json::Array{v.tokens[id], isNormal || v.scores[id] > least ? v.scores[id] : least});
  }
  return vocabulary;
}

Expected<std::unique_ptr<Tokenizer>> text::openGgufUnigram(const GgufVocabulary &v,
                                                           const GgufFile &file) {
  StringRef path = file.file().path(), key = "tokenizer.ggml.precompiled_charsmap";
  Expected<bool> prefix = ggufFlag(file, "tokenizer.ggml.add_space_prefix", false);
  Expected<bool> merge = ggufFlag(file, "tokenizer.ggml.remove_extra_whitespaces", false);
  if (!prefix || !merge)
    return joinErrors(prefix.takeError(), merge.takeError());
  json::Array steps;
  if (auto map = file.metadata().find(key.str()); map != file.metadata().end()) {
    const auto *array = std::get_if<GgufArray>(&map->second);
    if (!array || array->bytes.size() != array->count)
      return makeError(path + ": key " + quoted(key) + " is no array of bytes");
    StringRef bytes(reinterpret_cast<const char *>(array->bytes.data()), array->count);
    steps.push_back(typed("Precompiled", json::Object{{"precompiled_charsmap", encodeBase64(bytes)},
                                                      {"longest_prefix", true}}));
  }
  if (*merge) {
    steps.push_back(replaceAll("\\A +| +\\z", ""));
    steps.push_back(replaceAll(" +", " "));
  }
  if (*merge || *prefix) // llama.cpp puts a space in front where it merges them
    steps.push_back(replaceAll("\\A(?= *[^ ])", " "));
  steps.push_back(replace(" ", "\u2581"));
  json::Object root{
      {"normalizer", sequence("normalizers", std::move(steps))},
      {"decoder",
       typed("Metaspace", json::Object{{"replacement", "\u2581"},
                                       {"prepend_scheme", *merge || *prefix ? "always" : "never"},
                                       {"split", false}})},
      {"model", typed("Unigram", json::Object{{"unk_id", v.unknown.value_or(v.size())},
                                              {"vocab", scoredVocabulary(v)}})}};
  return openJson(std::move(root), v, path);
}
