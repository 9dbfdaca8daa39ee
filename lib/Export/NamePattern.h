// A regular expression in Python's syntax, by which PEFT finds modules.
#ifndef CTXC_LIB_EXPORT_NAMEPATTERN_H
#define CTXC_LIB_EXPORT_NAMEPATTERN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace ctxc {

/// PCRE2 runs it. What PCRE2 takes for something else than Python's `re` does is refused; steps are
/// limited, so that no expression runs without end.
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
  llvm::Expected<bool> match(llvm::StringRef name, unsigned options, std::string *index) const;

  std::string where;
  std::shared_ptr<void> code;
};

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_NAMEPATTERN_H
