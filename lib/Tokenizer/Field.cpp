#include "Field.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

Error Field::fail(const Twine &what) const {
  return makeError(where + (StringRef(where).ends_with(":") ? " " : ": ") + what);
}

static StringRef kindOf(const json::Value *value) {
  if (!value)
    return "nothing";
  switch (value->kind()) {
  case json::Value::Null:
    return "null";
  case json::Value::Boolean:
    return "a boolean";
  case json::Value::Number:
    return "a number";
  case json::Value::String:
    return "a string";
  case json::Value::Array:
    return "an array";
  case json::Value::Object:
    return "an object";
  }
  return "nothing";
}

Error Field::expected(StringRef what) const {
  return fail("found " + kindOf(value) + ", expected " + what);
}

Field Field::operator[](StringRef key) const {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  bool top = StringRef(where).ends_with(":");
  return Field(object ? object->get(key) : nullptr, where + (top ? " " : ".") + key.str());
}

Error Field::onlyKeys(ArrayRef<StringRef> keys) const {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return expected("an object");
  for (const auto &member : *object)
    if (!is_contained(keys, StringRef(member.first)))
      return fail("the key " + quoted(member.first) + " is not supported");
  return Error::success();
}

Error Field::followsTable(const KeyTable &table) const {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return expected("an object");
  for (const auto &[key, member] : *object) {
    const KeyRule &rule = table.ruleFor(key);
    if (rule.inert != isRead && !rule.allows(key, *object))
      return fail("the key " + quoted(key) + " is not supported: it may mean " + rule.meaning +
                  "; expected " + rule.expectation());
  }
  return Error::success();
}

Expected<std::string> Field::type() const {
  if (!value || !value->getAsObject())
    return expected("an object");
  return (*this)["type"].string();
}

Expected<std::string> Field::string(std::optional<std::string> absent) const {
  if (isNull() && absent)
    return *absent;
  if (!isString())
    return expected("a string");
  return value->getAsString()->str();
}

Expected<bool> Field::boolean(std::optional<bool> absent) const {
  if (isNull() && absent)
    return *absent;
  std::optional<bool> read = value ? value->getAsBoolean() : std::nullopt;
  if (!read)
    return expected("true or false");
  return *read;
}

Expected<int64_t> Field::count(std::optional<int64_t> absent) const {
  if (isNull() && absent)
    return *absent;
  std::optional<int64_t> read = value ? value->getAsInteger() : std::nullopt;
  if (!read || *read < 0)
    return expected("a non-negative integer");
  return *read;
}

Expected<char32_t> Field::character(std::optional<char32_t> absent) const {
  if (isNull() && absent)
    return *absent;
  std::optional<StringRef> read = value ? value->getAsString() : std::nullopt;
  size_t size = 0;
  char32_t c = read && !read->empty() ? firstCodePoint(*read, size) : 0;
  if (!size || size != read->size())
    return expected("a string of one character");
  return c;
}

Expected<std::vector<Field>> Field::array() const {
  const json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    return expected("an array");
  std::vector<Field> fields;
  for (size_t i = 0; i < array->size(); ++i)
    fields.emplace_back(&(*array)[i], where + "[" + std::to_string(i) + "]");
  return fields;
}

Expected<std::vector<std::pair<std::string, Field>>> Field::object() const {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return expected("an object");
  std::vector<std::pair<std::string, Field>> fields;
  for (const auto &member : *object)
    fields.emplace_back(member.first.str(),
                        Field(&member.second, where + "." + member.first.str()));
  return fields;
}
