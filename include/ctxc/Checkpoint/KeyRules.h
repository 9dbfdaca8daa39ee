//===- KeyRules.h - the keys of a format, and what their values mean ------===//
//
// A format has one table, with a row for each key. A key is read; or it changes no result, at any
// value or at some; or it is refused. A key that says what a model is called, how it was trained or
// how it generates text changes no number of a forward pass, whatever it says. Any other key that
// is not read names a feature, and must say that the feature is off.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_KEYRULES_H
#define CTXC_CHECKPOINT_KEYRULES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace ctxc {

/// Whether `text` is `pattern`, in which a `*` at the beginning or at the end stands for any text.
bool matchesPattern(llvm::StringRef pattern, llvm::StringRef text);

/// What KeyRule::inert says of a key that is read, of one that changes nothing only where it turns
/// something off, and of one that has no such value.
constexpr llvm::StringLiteral isRead = "read", off = R"([false, 0, "", "none", [], {}])",
                              never = "[]";

struct KeyRule {
  llvm::StringRef pattern; ///< of the key

  /// A JSON array of the values that change nothing, or one of the words above; empty where no
  /// value changes anything. Null never does.
  llvm::StringRef inert = {};
  /// What other values may mean, as the end of "it may mean …"; of a key that is read, what it
  /// says.
  llvm::StringRef meaning = {};
  /// A key beside it whose value false turns the feature off; empty where there is none.
  llvm::StringRef turnedOnBy = {};

  /// An array is inert where all its entries are.
  bool allows(llvm::StringRef key, const llvm::json::Object &config) const;
  /// The inert values in words.
  std::string expectation() const;
};

/// The keys of one format.
struct KeyTable {
  llvm::StringRef format; ///< such as the file's name
  /// The rule of a key is the first that matches; a pattern with `*` stands behind the keys that it
  /// must not cover. The last is that of all other keys, `*`.
  llvm::ArrayRef<KeyRule> rules;

  /// The rule for `key` of the object at the path `at`: the first that matches of `own`, which the
  /// reader of this object states, of the table's, and of these for the path.
  const KeyRule &ruleFor(llvm::StringRef key, llvm::StringRef at = "",
                         llvm::ArrayRef<KeyRule> own = {}) const;
};

} // namespace ctxc

#endif // CTXC_CHECKPOINT_KEYRULES_H
