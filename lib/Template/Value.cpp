#include "ctxc/Template/Value.h"
#include "Callable.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;

struct Value::Sequence {
  std::vector<Value> items;
  unsigned depth = 1;
};

struct Value::Dict {
  Entries entries;
  unsigned depth = 1;
};

Value Value::undefined(std::string why) {
  return Value(Kind::Undefined, std::make_shared<const std::string>(std::move(why)));
}

Value Value::string(std::string value) {
  return Value(Kind::String, std::make_shared<const std::string>(std::move(value)));
}

Value Value::sequence(Kind kind, std::vector<Value> items) {
  auto made = std::make_shared<Sequence>();
  for (const Value &item : items)
    made->depth = std::max(made->depth, item.depth() + 1);
  made->items = std::move(items);
  return Value(kind, std::shared_ptr<const Sequence>(std::move(made)));
}

Value Value::dict(Entries entries) {
  auto made = std::make_shared<Dict>();
  for (const auto &[key, value] : entries)
    made->depth = std::max({made->depth, key.depth() + 1, value.depth() + 1});
  made->entries = std::move(entries);
  return Value(Kind::Dict, std::shared_ptr<const Dict>(std::move(made)));
}

Value Value::record(llvm::ArrayRef<std::pair<std::string, std::string>> entries) {
  Entries made;
  for (const auto &[key, value] : entries)
    made.emplace_back(string(key), string(value));
  return dict(std::move(made));
}

Value Value::space(std::shared_ptr<Namespace> space) {
  return Value(Kind::Namespace, std::move(space));
}

Value Value::function(std::shared_ptr<const Callable> function) {
  return Value(Kind::Function, std::move(function));
}

llvm::ArrayRef<Value> Value::items() const {
  return std::get<std::shared_ptr<const Sequence>>(data)->items;
}

const Entries &Value::entries() const {
  return std::get<std::shared_ptr<const Dict>>(data)->entries;
}

StringRef Value::reason() const {
  const Text *text = std::get_if<Text>(&data);
  return text ? StringRef(**text) : "the value is undefined";
}

bool Value::truth() const {
  switch (which) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Boolean:
    return boolean();
  case Kind::Integer:
    return integer() != 0;
  case Kind::Real:
    return real() != 0;
  case Kind::String:
    return !string().empty();
  case Kind::List:
  case Kind::Tuple:
    return !items().empty();
  case Kind::Dict:
    return !entries().empty();
  case Kind::Generator:
  case Kind::Namespace:
  case Kind::Function:
    return true;
  }
  llvm_unreachable("a kind of value");
}

StringRef Value::typeName() const {
  static constexpr llvm::StringLiteral names[] = {"undefined", "none", "bool",      "int",
                                                  "float",     "str",  "list",      "tuple",
                                                  "generator", "dict", "namespace", "function"};
  return names[unsigned(which)];
}

unsigned Value::depth() const {
  if (isSequence())
    return std::get<std::shared_ptr<const Sequence>>(data)->depth;
  return is(Kind::Dict) ? std::get<std::shared_ptr<const Dict>>(data)->depth : 0;
}

bool Value::isSame(const Value &other) const { return which == other.which && data == other.data; }
