// The vocabulary that a GGUF file has inside, with llama.cpp's defaults for what the file does not
// say (llama_vocab::impl::load in llama.cpp's src/llama-vocab.cpp).
#ifndef CTXC_LIB_TOKENIZER_GGUFVOCABULARY_H
#define CTXC_LIB_TOKENIZER_GGUFVOCABULARY_H

#include "GgufSplits.h"
#include "ctxc/Checkpoint/Gguf.h"
#include "llvm/ADT/STLExtras.h"

namespace ctxc::text {

/// ggml's kinds of tokens, which are sentencepiece's.
enum class TokenKind {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

/// tokenizer.ggml.model: how tokens are found.
enum class GgufModel { SentencePiece, WordPiece, BytePairs, Unigram };

struct GgufVocabulary {
  GgufModel model = GgufModel::BytePairs;
  const GgufSplit *split = nullptr; ///< of BytePairs
  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<TokenKind> kinds;
  std::optional<int64_t> bos, eos, unknown, separator, padding;
  bool addBos = false, addEos = false;
  std::vector<int64_t> ends; ///< ascending: after one of them llama.cpp generates no other token
  /// What a user of the file should know.
  std::string warning;

  int64_t size() const { return tokens.size(); }
  /// Whether a text that has the token's content has the token there, before anything else is
  /// split.
  bool isSymbol(int64_t id) const {
    return kinds[id] == TokenKind::Control || kinds[id] == TokenKind::UserDefined ||
           kinds[id] == TokenKind::Unknown;
  }
  /// What white space an added token takes with it.
  bool stripsLeft(int64_t id) const { return llvm::binary_search(leftStripping, id); }
  bool stripsRight(int64_t id) const { return llvm::binary_search(rightStripping, id); }

  /// The ids that are put around a text.
  std::vector<int64_t> before() const;
  std::vector<int64_t> after() const;

  /// Errors name the key: it is absent, malformed, or has a value that is not known.
  static llvm::Expected<GgufVocabulary> read(const GgufFile &file);

  std::vector<int64_t> leftStripping, rightStripping; ///< ascending
};

/// The file's value of a key that says yes or no; an error if it is of another kind.
llvm::Expected<bool> ggufFlag(const GgufFile &file, llvm::StringRef key, bool absent);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_GGUFVOCABULARY_H
