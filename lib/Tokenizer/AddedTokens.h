// The added tokens of a tokenizer.json: texts that are always one token,
// found before anything is split. Those that are not "normalized" are found in the
// original text, the others after normalization.
#ifndef CTXC_LIB_TOKENIZER_ADDEDTOKENS_H
#define CTXC_LIB_TOKENIZER_ADDEDTOKENS_H

#include "Model.h"
#include "Normalizer.h"
#include "PreTokenizer.h"
#include "Regex.h"
#include "Unicode.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include <array>

namespace ctxc::text {

/// A part of a text: an added token's id, or text that is still to be split.
struct Part {
  Range range;
  std::optional<int32_t> id;
};

class AddedTokens {
public:
  /// Adds the tokens to `vocabulary`. `normalizer` may be null. Errors: a malformed
  /// list, or an id that the vocabulary gives to another token.
  static llvm::Expected<AddedTokens> read(const Field &field, const Normalizer *normalizer,
                                          Vocabulary &vocabulary);
  /// Adds tokens of a list without ids that are not among these yet: each has the id that the model
  /// has for it, or the next.
  llvm::Error extend(const Field &field, const Normalizer *normalizer, Vocabulary &vocabulary);

  /// From now on special tokens are not found in a text.
  void forgetSpecial();

  /// Splits `text`, from left to right. Tokens take white space with them (lstrip, rstrip) that
  /// `isSpace`.
  std::vector<Part> splitRaw(llvm::StringRef text, bool (*isSpace)(char32_t) = isWhiteSpace) const {
    return split(text, raw, isSpace);
  }
  std::vector<Part> splitNormalized(llvm::StringRef text) const {
    return split(text, normalized, isWhiteSpace);
  }

  /// What decoding shows for an added token found in normalized text: its normalized
  /// content, as the tokenizers package does. Null for other ids.
  const std::string *shown(int64_t id) const {
    auto entry = normalizedContents.find(id);
    return entry == normalizedContents.end() ? nullptr : &entry->second;
  }

  /// Whether decoding leaves this token out.
  bool isSpecial(llvm::StringRef token) const { return special.contains(token); }

private:
  struct Token {
    int32_t id = 0;
    bool singleWord = false, stripLeft = false, stripRight = false, isSpecial = false;
  };
  /// The longest token wins, of those that begin first.
  struct Finder {
    llvm::StringMap<Token> tokens;
    std::array<std::vector<size_t>, 256> lengths; // by first byte; longest first
    void add(llvm::StringRef content, const Token &token);
    const Token *find(llvm::StringRef text, size_t &length) const;
    void forgetSpecial();
  };
  Finder raw, normalized;
  llvm::StringSet<> special, contents;
  int64_t largest = -1; ///< of the ids
  llvm::DenseMap<int64_t, std::string> normalizedContents;

  llvm::Error add(const Field &field, std::optional<int64_t> id, const Normalizer *normalizer,
                  Vocabulary &vocabulary);
  int64_t idOf(llvm::StringRef content, std::optional<int64_t> given,
               const Vocabulary &vocabulary) const;
  static std::vector<Part> split(llvm::StringRef text, const Finder &finder,
                                 bool (*isSpace)(char32_t));
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_ADDEDTOKENS_H
