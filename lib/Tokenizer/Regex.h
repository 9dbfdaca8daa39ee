// Splitting expressions: those of Oniguruma, which the tokenizers package uses, and literal texts.
#ifndef CTXC_LIB_TOKENIZER_REGEX_H
#define CTXC_LIB_TOKENIZER_REGEX_H

#include "ctxc/Support/RegularExpression.h"
#include <vector>

namespace ctxc::text {

using Range = RegularExpression::Range;

class Regex {
public:
  /// Errors: those of RegularExpression::compile. The message begins with `where`.
  static llvm::Expected<Regex> compile(llvm::StringRef pattern, const std::string &where);
  /// An expression that finds `content` itself.
  static Regex literal(llvm::StringRef content);

  /// All matches in `text` (UTF-8), from left to right, without overlap. Error: the
  /// limit on steps is reached.
  llvm::Expected<std::vector<Range>> find(llvm::StringRef text) const;

private:
  std::string content; // of a literal
  std::optional<RegularExpression> expression;
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_REGEX_H
