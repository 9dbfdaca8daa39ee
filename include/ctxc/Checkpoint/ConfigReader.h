//===- ConfigReader.h - an object, read key by key, none overlooked -------===//
//
// Every key that is read is remembered. A key that was not read is a problem unless the format's
// table (KeyRules.h) knows that its value leaves the results unchanged: what needs an unknown
// feature must not be read without it. Problems are collected, so that a user sees all of them at
// once.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_CONFIGREADER_H
#define CTXC_CHECKPOINT_CONFIGREADER_H

#include "ctxc/Checkpoint/KeyRules.h"
#include "ctxc/Support/Problems.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ctxc {

/// Reads one JSON object. A key whose value is null counts as absent. After a
/// problem a function returns a value that is safe to compute with.
class ConfigReader {
public:
  /// Every message begins with `file`; `at` is the path of keys to this object, such
  /// as "text_config." or "".
  ConfigReader(const llvm::json::Object &object, llvm::StringRef file, std::string at,
               const KeyTable &table, Problems &problems)
      : json(object), file(file.str()), at(std::move(at)), table(table), problems(problems) {}

  bool has(llvm::StringRef key) const;
  bool isNull(llvm::StringRef key) const { return json.get(nameOf(key)) && !has(key); }

  /// An integer in [least, most]. Without `absent` the key must be there.
  int64_t integer(llvm::StringRef key, std::optional<int64_t> absent, int64_t least, int64_t most);
  /// A finite number in [least, most].
  double number(llvm::StringRef key, double absent, double least, double most);
  /// The same for a number that null turns off, which differs from an absent key.
  std::optional<double> optionalNumber(llvm::StringRef key, std::optional<double> absent,
                                       double least, double most);
  bool flag(llvm::StringRef key, bool absent);
  std::string text(llvm::StringRef key, llvm::StringRef absent);
  /// An array of strings; empty where absent.
  std::vector<std::string> texts(llvm::StringRef key);
  /// An array of integers in [least, most]; empty where absent.
  std::vector<int64_t> integers(llvm::StringRef key, int64_t least, int64_t most);
  /// An array of finite numbers in [least, most], `count` of them; that many 1s where absent.
  std::vector<double> factors(llvm::StringRef key, size_t count, double least, double most);
  /// An array of finite numbers in [least, most]; empty where absent.
  std::vector<double> numbers(llvm::StringRef key, double least, double most);
  /// The value itself, for types without a reader; null where absent.
  const llvm::json::Value *value(llvm::StringRef key) { return take(key); }
  /// The same, but a null is a value too.
  const llvm::json::Value *raw(llvm::StringRef key);
  /// The reader of a nested object, owned by this one; null where absent.
  ConfigReader *object(llvm::StringRef key);

  /// From here on `other`, where it is there, is read in the place of `key`.
  void prefer(llvm::StringRef key, llvm::StringRef other);

  /// The flag must have the one value that is supported.
  void require(llvm::StringRef key, bool absent, bool supported, llvm::StringRef why);

  /// Keys that this family does not read, and the values at which they change none of its numbers.
  void unread(std::initializer_list<KeyRule> rules) { own.append(rules.begin(), rules.end()); }

  /// A problem of one key, with its value: "FILE: key 'K' = V `message`".
  void problem(llvm::StringRef key, const llvm::Twine &message);
  /// A problem: the key has to be there.
  void missing(llvm::StringRef key);
  /// A problem of the file as a whole.
  void problem(const llvm::Twine &message);

  /// Reports the keys that were not read, here and in the nested objects.
  void finish();

private:
  const llvm::json::Value *take(llvm::StringRef key);
  llvm::StringRef nameOf(llvm::StringRef key) const; ///< in the file

  const llvm::json::Object &json;
  std::string file, at;
  const KeyTable &table;
  Problems &problems;
  llvm::StringSet<> read;
  llvm::StringMap<std::string> preferred; ///< keys that others stand for
  llvm::SmallVector<KeyRule, 0> own;
  std::vector<std::pair<std::string, std::unique_ptr<ConfigReader>>> nested;
};

} // namespace ctxc

#endif // CTXC_CHECKPOINT_CONFIGREADER_H
