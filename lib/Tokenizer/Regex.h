// Splitting expressions, run by PCRE2. They are written for Oniguruma (with Ruby's
// syntax), which the tokenizers package uses; what the two interpret differently is
// translated or refused. Steps are limited, so that no expression runs without end.
#ifndef CTXC_LIB_TOKENIZER_REGEX_H
#define CTXC_LIB_TOKENIZER_REGEX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace ctxc::text {

/// Byte offsets, end not included.
struct Range {
  size_t begin, end;
};

class Regex {
public:
  /// Errors: `pattern` is malformed, or has a part that the two engines interpret differently.
  /// The message begins with `where`.
  static llvm::Expected<Regex> compile(llvm::StringRef pattern, const std::string &where);
  /// An expression that finds `content` itself.
  static Regex literal(llvm::StringRef content);

  /// All matches in `text` (UTF-8), from left to right, without overlap. Error: the
  /// limit on steps is reached.
  llvm::Expected<std::vector<Range>> find(llvm::StringRef text) const;

private:
  std::string content; // of a literal
  std::string where;
  std::shared_ptr<void> code;
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_REGEX_H
