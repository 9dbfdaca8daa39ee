// A template as tokens: text, and the words of its tags, with white space as trim_blocks and
// lstrip_blocks leave it.
#ifndef CTXC_LIB_TEMPLATE_LEXER_H
#define CTXC_LIB_TEMPLATE_LEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ctxc::jinja {

struct Token {
  enum Kind {
    Data,          ///< text outside of tags
    VariableBegin, ///< {{
    VariableEnd,
    BlockBegin, ///< {%
    BlockEnd,
    Name,
    String, ///< `text` is its value
    Integer,
    Real,
    Operator,
    End
  };
  Kind kind = End;
  std::string text;
  unsigned line = 1;
  int64_t integer = 0;
  double real = 0;

  bool isName(llvm::StringRef name) const { return kind == Name && text == name; }
  bool isOperator(llvm::StringRef spelled) const { return kind == Operator && text == spelled; }
};

/// The tokens of `source`, which is UTF-8; the last one is End. Messages begin with `name` and the
/// line.
llvm::Expected<std::vector<Token>> tokenize(llvm::StringRef source, llvm::StringRef name);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_LEXER_H
