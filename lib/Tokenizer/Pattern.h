// {"String": …} or {"Regex": …}, and a text with its matches replaced.
#ifndef CTXC_LIB_TOKENIZER_PATTERN_H
#define CTXC_LIB_TOKENIZER_PATTERN_H

#include "Field.h"
#include "Regex.h"

namespace ctxc::text {

llvm::Expected<Regex> readPattern(const Field &field);

/// Error: a limit on steps or on the length of the result.
llvm::Expected<std::string> replaceAll(llvm::StringRef text, const Regex &pattern,
                                       llvm::StringRef content, const std::string &where);

/// {"type": "Replace", "pattern": …, "content": "…"}
struct Replacement {
  Regex pattern;
  std::string content, where;

  static llvm::Expected<Replacement> read(const Field &field);
  /// Errors of replaceAll.
  llvm::Expected<std::string> in(llvm::StringRef text) const {
    return replaceAll(text, pattern, content, where);
  }
};

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_PATTERN_H
