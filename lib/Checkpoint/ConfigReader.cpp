#include "ctxc/Checkpoint/ConfigReader.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

namespace {

/// A value as messages show it: compact JSON, cut short.
std::string shown(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return quoted(*text);
  std::string text;
  raw_string_ostream(text) << value;
  return text.size() <= 60 ? text : text.substr(0, 60) + "…";
}

std::string range(double least, double most) {
  std::string text;
  raw_string_ostream(text) << format("from %g to %g", least, most);
  return text;
}

} // namespace

void ConfigReader::prefer(StringRef key, StringRef other) {
  if (!json.get(other))
    return;
  preferred[key] = other.str();
  read.insert(key);
}

StringRef ConfigReader::nameOf(StringRef key) const {
  auto found = preferred.find(key);
  return found == preferred.end() ? key : StringRef(found->second);
}

bool ConfigReader::has(StringRef key) const {
  const json::Value *value = json.get(nameOf(key));
  return value && value->kind() != json::Value::Null;
}

const json::Value *ConfigReader::take(StringRef key) {
  read.insert(nameOf(key));
  return has(key) ? json.get(nameOf(key)) : nullptr;
}

const json::Value *ConfigReader::raw(StringRef key) {
  take(key);
  return json.get(nameOf(key));
}

int64_t ConfigReader::integer(StringRef key, std::optional<int64_t> absent, int64_t least,
                              int64_t most) {
  const json::Value *value = take(key);
  if (!value) {
    if (!absent)
      missing(key);
    return absent.value_or(least);
  }
  std::optional<int64_t> found = value->getAsInteger();
  if (found && *found >= least && *found <= most)
    return *found;
  problem(key, "is out of range; expected an integer from " + Twine(least) + " to " + Twine(most));
  return absent.value_or(least);
}

double ConfigReader::number(StringRef key, double absent, double least, double most) {
  const json::Value *value = take(key);
  if (!value)
    return absent;
  std::optional<double> found = value->getAsNumber();
  if (found && *found >= least && *found <= most) // false for NaN
    return *found;
  problem(key, "is out of range; expected a number " + range(least, most));
  return absent;
}

std::optional<double> ConfigReader::optionalNumber(StringRef key, std::optional<double> absent,
                                                   double least, double most) {
  if (isNull(key)) {
    read.insert(key);
    return std::nullopt;
  }
  return has(key) ? number(key, least, least, most) : absent;
}

bool ConfigReader::flag(StringRef key, bool absent) {
  const json::Value *value = take(key);
  if (!value)
    return absent;
  if (std::optional<bool> found = value->getAsBoolean())
    return *found;
  problem(key, "is not understood; expected true or false");
  return absent;
}

std::string ConfigReader::text(StringRef key, StringRef absent) {
  const json::Value *value = take(key);
  if (!value)
    return absent.str();
  if (std::optional<StringRef> found = value->getAsString())
    return found->str();
  problem(key, "is not understood; expected a string");
  return absent.str();
}

std::vector<std::string> ConfigReader::texts(StringRef key) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  std::vector<std::string> found;
  if (const json::Array *array = value->getAsArray())
    for (const json::Value &element : *array)
      if (std::optional<StringRef> text = element.getAsString())
        found.push_back(text->str());
  if (!value->getAsArray() || found.size() != value->getAsArray()->size()) {
    problem(key, "is not understood; expected an array of strings");
    return {};
  }
  return found;
}

std::vector<int64_t> ConfigReader::integers(StringRef key, int64_t least, int64_t most) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  std::vector<int64_t> found;
  if (const json::Array *array = value->getAsArray())
    for (const json::Value &element : *array)
      if (std::optional<int64_t> number = element.getAsInteger())
        if (*number >= least && *number <= most)
          found.push_back(*number);
  if (!value->getAsArray() || found.size() != value->getAsArray()->size()) {
    problem(key, "is not understood; expected an array of integers from " + Twine(least) + " to " +
                     Twine(most));
    return {};
  }
  return found;
}

/// The numbers of an array that are in the range.
static std::vector<double> numbersOf(const json::Array *array, double least, double most) {
  std::vector<double> found;
  for (const json::Value &element : array ? *array : json::Array())
    if (std::optional<double> number = element.getAsNumber())
      if (*number >= least && *number <= most)
        found.push_back(*number);
  return found;
}

std::vector<double> ConfigReader::numbers(StringRef key, double least, double most) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  const json::Array *array = value->getAsArray();
  std::vector<double> found = numbersOf(array, least, most);
  if (array && found.size() == array->size())
    return found;
  problem(key, "is not understood; expected an array of numbers " + range(least, most));
  return {};
}

std::vector<double> ConfigReader::factors(StringRef key, size_t count, double least, double most) {
  std::vector<double> absent(count, 1);
  const json::Value *value = take(key);
  if (!value)
    return absent;
  const json::Array *array = value->getAsArray();
  std::vector<double> found = numbersOf(array, least, most);
  if (array && array->size() == count && found.size() == count)
    return found;
  problem(key, "is not understood; expected an array of " + Twine(count) + " numbers " +
                   range(least, most));
  return absent;
}

ConfigReader *ConfigReader::object(StringRef key) {
  for (auto &[name, reader] : nested)
    if (name == key)
      return reader.get();
  const json::Value *value = take(key);
  if (!value)
    return nullptr;
  const json::Object *found = value->getAsObject();
  if (!found) {
    problem(key, "is not understood; expected an object");
    return nullptr;
  }
  nested.emplace_back(key.str(), std::make_unique<ConfigReader>(*found, file, at + key.str() + ".",
                                                                table, problems));
  return nested.back().second.get();
}

void ConfigReader::require(StringRef key, bool absent, bool supported, StringRef why) {
  if (flag(key, absent) != supported)
    problem(key, "is not supported: " + why);
}

void ConfigReader::problem(StringRef key, const Twine &message) {
  key = nameOf(key);
  const json::Value *value = json.get(key);
  problems.add(file + ": key " + quoted(at + key.str()) + " = " + (value ? shown(*value) : "null") +
               " " + message);
}

void ConfigReader::missing(StringRef key) { problem("has no key '" + at + key + "'"); }

void ConfigReader::problem(const Twine &message) { problems.add(file + ": " + message); }

void ConfigReader::finish() {
  SmallVector<StringRef> unread;
  for (const auto &[key, value] : json)
    if (!read.contains(key))
      unread.push_back(key);
  llvm::sort(unread);
  for (StringRef key : unread) {
    const KeyRule &rule = table.ruleFor(key, at, own);
    if (!rule.allows(key, json))
      problem(key, "is not understood: it may mean " + rule.meaning + "; expected " +
                       rule.expectation() + " (remove the key if it changes no number)");
  }
  for (auto &[name, reader] : nested)
    reader->finish();
}
