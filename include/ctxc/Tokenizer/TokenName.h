//===- TokenName.h - how a token is shown ------------------------------------===//
//
// A vocabulary spells tokens in its own way: "Ġis", "▁the", "##ing", "Ã»". People read what they
// stand for, " is", " the", "ing", "û"; reports for programs have both.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOKENIZER_TOKENNAME_H
#define CTXC_TOKENIZER_TOKENNAME_H

#include "ctxc/Tokenizer/Tokenizer.h"
#include <functional>

namespace ctxc {

/// `bytes` on one line of a table: a space is ␣, a line break \n, a tab \t; other control
/// characters, and bytes that are only a part of a character, are \xNN.
std::string visibleText(llvm::StringRef bytes);

/// Names tokens by a tokenizer, and by their ids without one. −1 stands for an embedding in place
/// of a token.
class TokenName {
public:
  TokenName() = default;
  explicit TokenName(const Tokenizer &tokenizer) : tokenizer(&tokenizer) {}

  /// For tables and pages.
  std::string operator()(int64_t id) const;
  /// What the token stands for; maybe only a part of a character.
  std::string bytes(int64_t id) const;
  /// The same as UTF-8, for JSON: a part of a character is shown as \xNN.
  std::string text(int64_t id) const;
  /// As the vocabulary spells it.
  std::string piece(int64_t id) const;

private:
  const Tokenizer *tokenizer = nullptr;
};

} // namespace ctxc

#endif // CTXC_TOKENIZER_TOKENNAME_H
