//===- RegularExpression.h - Oniguruma, with a limit on its steps ---------===//
#ifndef CTXC_SUPPORT_REGULAREXPRESSION_H
#define CTXC_SUPPORT_REGULAREXPRESSION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>

namespace ctxc {

/// A compiled expression over UTF-8. The steps of a search are limited, so that none runs without
/// end.
class RegularExpression {
public:
  enum class Syntax {
    oniguruma, ///< Oniguruma's own, in which the tokenizers package reads expressions
    python     ///< that of Python's re, as far as Oniguruma knows it
  };

  /// Byte offsets; `end` is not included.
  struct Range {
    size_t begin, end;
  };

  /// Errors: `pattern` has more than 64 KiB, or is malformed. This message and those of a search
  /// begin with `where`.
  static llvm::Expected<RegularExpression> compile(llvm::StringRef pattern, Syntax syntax,
                                                   const std::string &where);

  /// The first match that begins at `from` or behind it. Errors: the limit on steps is reached; the
  /// match begins behind its end or before `from` (\K in a lookaround sets the beginning).
  llvm::Expected<std::optional<Range>> search(llvm::StringRef text, size_t from = 0) const;

  /// The text that the group `name` has in the first match; empty where nothing matches, or the
  /// group has no part in it.
  llvm::Expected<std::string> searchGroup(llvm::StringRef text, llvm::StringRef name) const;

private:
  struct Region;
  llvm::Expected<bool> search(llvm::StringRef text, size_t from, Region &region) const;

  std::string where;
  std::shared_ptr<void> program;
};

} // namespace ctxc

#endif // CTXC_SUPPORT_REGULAREXPRESSION_H
