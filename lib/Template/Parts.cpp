// Attributes, elements and slices of values.
#include "Machine.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;
using Kind = Value::Kind;

static std::string missing(const Value &object, const Twine &what) {
  return ("a " + object.typeName() + " has no " + what).str();
}

Value Machine::attribute(const Value &object, StringRef name) {
  if (object.is(Kind::Undefined))
    return fail(object.reason());
  if (object.is(Kind::Namespace)) {
    for (const auto &[key, value] : object.space().attributes)
      if (key == name)
        return value;
    return Value::undefined(missing(object, "attribute '" + name + "'"));
  }
  if (std::optional<Value> bound = method(object, name))
    return *bound;
  if (object.is(Kind::Dict))
    if (const Value *value = find(object.entries(), Value::string(name.str())))
      return *value;
  return Value::undefined(missing(object, "attribute '" + name + "'"));
}

/// An index from the front or, negative, from the back; none where it is outside.
static std::optional<size_t> position(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  if (index < 0 || index >= size)
    return std::nullopt;
  return size_t(index);
}

Value Machine::item(const Value &object, const Value &index) {
  if (object.is(Kind::Undefined))
    return fail(object.reason());
  if (object.is(Kind::Dict) && !index.is(Kind::List) && !index.is(Kind::Dict))
    if (const Value *value = find(object.entries(), index))
      return *value;
  bool isList = object.is(Kind::List) || object.is(Kind::Tuple);
  if (index.isWhole() && (isList || object.is(Kind::String))) {
    int64_t size = lengthOf(object);
    std::optional<size_t> at = position(index.integer(), size);
    if (at && isList)
      return object.items()[*at];
    if (at) {
      Value found = elements(object)[*at];
      return failed() ? Value() : found;
    }
    return Value::undefined(missing(object, "element " + Twine(index.integer())));
  }
  if (index.is(Kind::String))
    return attribute(object, index.string());
  return Value::undefined(missing(object, "element of that index"));
}

Value Machine::slice(const Value &object, const Value &begin, const Value &end, const Value &step) {
  if (object.is(Kind::Undefined))
    return fail(object.reason());
  bool isList = object.is(Kind::List) || object.is(Kind::Tuple);
  if (!isList && !object.is(Kind::String))
    return Value::undefined(missing(object, "slices"));
  for (const Value *bound : {&begin, &end, &step})
    if (!bound->is(Kind::None) && !bound->isWhole())
      return fail("a bound of a slice is a " + bound->typeName() + ", expected an integer");
  std::vector<Value> items = elements(object);
  int64_t size = items.size(), by = step.is(Kind::None) ? 1 : step.integer();
  if (by == 0)
    return fail("the step of a slice is zero");
  auto bound = [&](const Value &given, int64_t otherwise) {
    if (given.is(Kind::None))
      return otherwise;
    int64_t at = given.integer();
    if (at < 0)
      at = std::max<int64_t>(at, -size - 1) + size;
    return std::clamp<int64_t>(at, by > 0 ? 0 : -1, by > 0 ? size : size - 1);
  };
  int64_t from = bound(begin, by > 0 ? 0 : size - 1), to = bound(end, by > 0 ? size : -1);
  std::vector<Value> chosen;
  if (by > 0)
    by = std::min(by, size + 1);
  else
    by = std::max(by, -size - 1);
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
    chosen.push_back(items[i]);
  if (isList)
    return sequence(object.kind(), std::move(chosen));
  std::string joined;
  for (const Value &character : chosen)
    joined += character.string();
  return failed() ? Value() : text(std::move(joined));
}
