//===- KeyRules.h - keys of config.json that no equation reads ------------===//
//
// A key's value decides. A key that says what a model is called, how it was trained or how it
// generates text changes no number of a forward pass, whatever it says. Any other key that the
// family does not read names a feature, and must say that the feature is off.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_KEYRULES_H
#define CTXC_IMPORT_KEYRULES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace ctxc::hf {

/// Whether `text` is `pattern`, in which a `*` at the beginning or at the end stands for any text.
bool matchesPattern(llvm::StringRef pattern, llvm::StringRef text);

struct KeyRule {
  llvm::StringRef pattern; ///< of the key

  /// A JSON array of the values that change no number; empty where no value does. Null never does.
  llvm::StringRef inert = {};
  /// What other values may mean, as the end of "it may mean …".
  llvm::StringRef meaning = {};
  /// A key beside it whose value false turns the feature off; empty where there is none.
  llvm::StringRef turnedOnBy = {};

  /// An array is inert where all its entries are.
  bool allows(llvm::StringRef key, const llvm::json::Object &config) const;
  /// The inert values in words.
  std::string expectation() const;
};

/// The rule for `key` of the object at the path `at`: the first that matches of `own`, which a
/// family states, of those for all families, and of these for the path. There always is one.
const KeyRule &ruleFor(llvm::StringRef key, llvm::StringRef at, llvm::ArrayRef<KeyRule> own);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_KEYRULES_H
