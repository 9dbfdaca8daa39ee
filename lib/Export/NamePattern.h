// A regular expression in Python's syntax, by which PEFT finds modules.
#ifndef CTXC_LIB_EXPORT_NAMEPATTERN_H
#define CTXC_LIB_EXPORT_NAMEPATTERN_H

#include "ctxc/Support/RegularExpression.h"

namespace ctxc {

/// What Oniguruma may take for something else than Python's `re` does is refused.
class NamePattern {
public:
  /// `given` as it is in the file, inside `before` and `behind`; an error begins with `where`.
  static llvm::Expected<NamePattern> compile(llvm::StringRef given, const std::string &where,
                                             llvm::StringRef before = "",
                                             llvm::StringRef behind = "");

  /// Whether it fits the whole name. Error: the limit on steps.
  llvm::Expected<bool> fits(llvm::StringRef name) const;
  /// The group `idx` of the match at the beginning of the name; empty where there is none.
  llvm::Expected<std::string> indexIn(llvm::StringRef name) const;

private:
  std::optional<RegularExpression> whole, beginning;
};

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_NAMEPATTERN_H
