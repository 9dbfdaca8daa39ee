// One value of a tokenizer.json with its place, so that every message says where.
#ifndef CTXC_LIB_TOKENIZER_FIELD_H
#define CTXC_LIB_TOKENIZER_FIELD_H

#include "ctxc/Checkpoint/KeyRules.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ctxc::text {

class Field {
public:
  Field(const llvm::json::Value *value, std::string where)
      : value(value), where(std::move(where)) {}

  const std::string &place() const { return where; } // "FILE: normalizer.normalizers[2]"
  bool isNull() const { return !value || value->kind() == llvm::json::Value::Null; }
  bool isString() const { return value && value->getAsString(); }
  bool isObject() const { return value && value->getAsObject(); }

  /// "PLACE: WHAT".
  llvm::Error fail(const llvm::Twine &what) const;

  /// A member; null where it is absent. This must be an object (see onlyKeys).
  Field operator[](llvm::StringRef key) const;

  /// Checks that this is an object with no keys but these. Unread keys might change ids.
  llvm::Error onlyKeys(llvm::ArrayRef<llvm::StringRef> keys) const;

  /// The same by the table of a format.
  llvm::Error followsTable(const KeyTable &table) const;

  /// The member "type" of an object; every component has one.
  llvm::Expected<std::string> type() const;

  /// This value as …; an error where it is something else. A null gives `absent`, where there is
  /// one.
  llvm::Expected<std::string> string(std::optional<std::string> absent = std::nullopt) const;
  llvm::Expected<bool> boolean(std::optional<bool> absent = std::nullopt) const;
  llvm::Expected<int64_t> count(std::optional<int64_t> absent = std::nullopt) const;
  llvm::Expected<char32_t> character(std::optional<char32_t> absent = std::nullopt) const;
  llvm::Expected<std::vector<Field>> array() const;
  llvm::Expected<std::vector<std::pair<std::string, Field>>> object() const;

private:
  const llvm::json::Value *value;
  std::string where;

  llvm::Error expected(llvm::StringRef what) const;
};

/// The steps that an object {"type": "Sequence", `key`: […]} lists, each as `read` makes it; those
/// that it makes null do nothing, and are left out.
template <typename Step, typename Read>
llvm::Expected<std::vector<std::unique_ptr<Step>>> readSteps(const Field &field,
                                                             llvm::StringRef key, Read read) {
  if (llvm::Error error = field.onlyKeys({"type", key}))
    return std::move(error);
  llvm::Expected<std::vector<Field>> fields = field[key].array();
  if (!fields)
    return fields.takeError();
  std::vector<std::unique_ptr<Step>> steps;
  for (const Field &each : *fields) {
    llvm::Expected<std::unique_ptr<Step>> step = read(each);
    if (!step)
      return step.takeError();
    if (*step)
      steps.push_back(std::move(*step));
  }
  return steps;
}

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_FIELD_H
