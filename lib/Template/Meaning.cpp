// str(), repr(), equality, order and length, as Python has them.
#include "Machine.h"
#include "Text.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;
using Kind = Value::Kind;

std::string Machine::textOf(const Value &value) {
  if (value.is(Kind::String))
    return value.string().str();
  return value.is(Kind::Undefined) ? "" : reprOf(value);
}

std::string Machine::reprOf(const Value &value) {
  spend(1);
  if (failed())
    return "";
  auto joined = [&](char open, char close) {
    std::string all(1, open);
    for (const Value &item : value.items())
      all += (all.size() > 1 ? ", " : "") + reprOf(item);
    return all + (value.is(Kind::Tuple) && value.items().size() == 1 ? "," : "") + close;
  };
  switch (value.kind()) {
  case Kind::Undefined:
    return "Undefined";
  case Kind::None:
    return "None";
  case Kind::Boolean:
    return value.boolean() ? "True" : "False";
  case Kind::Integer:
    return std::to_string(value.integer());
  case Kind::Real:
    return realText(value.real());
  case Kind::String:
    return quotedText(value.string());
  case Kind::List:
    return joined('[', ']');
  case Kind::Tuple:
    return joined('(', ')');
  case Kind::Dict: {
    std::string all = "{";
    for (const auto &[key, item] : value.entries())
      all += (all.size() > 1 ? ", " : "") + reprOf(key) + ": " + reprOf(item);
    return all + "}";
  }
  default:
    fail("a " + value.typeName() + " has no text");
    return "";
  }
}

bool Machine::equal(const Value &left, const Value &right) {
  spend(1);
  if (failed())
    return false;
  if (left.isNumber() && right.isNumber())
    return left.isWhole() && right.isWhole() ? left.integer() == right.integer()
                                             : left.real() == right.real();
  if (left.kind() != right.kind())
    return false;
  switch (left.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::String:
    spend(left.string().size() / 64);
    return left.string() == right.string();
  case Kind::List:
  case Kind::Tuple: {
    llvm::ArrayRef<Value> a = left.items(), b = right.items();
    for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i)
      if (!equal(a[i], b[i]))
        return false;
    return a.size() == b.size();
  }
  case Kind::Dict:
    for (const auto &[key, value] : left.entries()) {
      const Value *other = find(right.entries(), key);
      if (!other || !equal(value, *other))
        return false;
    }
    return left.entries().size() == right.entries().size();
  default:
    return left.isSame(right);
  }
}

bool Machine::less(const Value &left, const Value &right) {
  spend(1);
  if (failed())
    return false;
  if (left.isWhole() && right.isWhole())
    return left.integer() < right.integer();
  if (left.isNumber() && right.isNumber())
    return left.real() < right.real();
  if (left.is(Kind::String) && right.is(Kind::String))
    return left.string() < right.string(); // the order of UTF-8 is that of code points
  bool ordered = left.kind() == right.kind() && (left.is(Kind::List) || left.is(Kind::Tuple));
  if (!ordered) {
    for (const Value *value : {&left, &right})
      if (value->is(Kind::Undefined))
        fail(value->reason());
    fail("a " + left.typeName() + " and a " + right.typeName() + " have no order");
    return false;
  }
  llvm::ArrayRef<Value> a = left.items(), b = right.items();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!equal(a[i], b[i]))
      return less(a[i], b[i]);
  return a.size() < b.size();
}

void Machine::checkKey(const Value &key) {
  if (key.is(Kind::List) || key.is(Kind::Dict))
    fail("a " + key.typeName() + " cannot be a key of a dictionary");
}

const Value *Machine::find(const Entries &entries, const Value &key) {
  for (const auto &[known, value] : entries)
    if (equal(known, key))
      return &value;
  return nullptr;
}

bool Machine::contains(const Value &container, const Value &item) {
  if (container.is(Kind::String)) {
    if (!item.is(Kind::String)) {
      fail("'in' looks for a str in a str, found a " + item.typeName());
      return false;
    }
    spend(container.string().size() / 64);
    return container.string().contains(item.string());
  }
  if (container.is(Kind::Dict)) {
    checkKey(item);
    return find(container.entries(), item);
  }
  for (const Value &each : elements(container))
    if (equal(each, item))
      return true;
  return false;
}

std::vector<Value> Machine::elements(const Value &value) {
  std::vector<Value> all;
  if (value.isSequence()) {
    all = value.items().vec();
  } else if (value.is(Kind::Dict)) {
    for (const auto &[key, item] : value.entries())
      all.push_back(key);
  } else if (value.is(Kind::String)) {
    spend(value.string().size()); // before memory is taken for each character
    if (!failed())
      for (StringRef c : characters(value.string()))
        all.push_back(Value::string(c.str()));
  } else if (!value.is(Kind::Undefined)) {
    fail("a " + value.typeName() + " has no elements");
  }
  spend(all.size());
  return all;
}

int64_t Machine::lengthOf(const Value &value) {
  if (value.is(Kind::List) || value.is(Kind::Tuple))
    return value.items().size();
  if (value.is(Kind::Dict))
    return value.entries().size();
  if (value.is(Kind::String)) {
    spend(value.string().size() / 64);
    return countCharacters(value.string());
  }
  if (!value.is(Kind::Undefined))
    fail("a " + value.typeName() + " has no length");
  return 0;
}
