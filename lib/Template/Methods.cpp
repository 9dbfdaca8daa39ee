// The methods of text, dictionaries and lists that change nothing.
#include "Machine.h"
#include "Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

using Given = llvm::ArrayRef<std::optional<Value>>;

namespace {

struct Method {
  StringRef name;
  Value (*apply)(Machine &, const Value &, Given);
  std::vector<StringRef> parameters;
};

class Bound final : public Callable {
public:
  Bound(const Method &method, Value object) : method(method), object(std::move(object)) {}
  Value call(Machine &machine, Arguments arguments) const override {
    auto given = bindArguments(machine, method.name, std::move(arguments), method.parameters);
    return machine.failed() ? Value() : method.apply(machine, object, given);
  }

private:
  const Method &method;
  Value object;
};

} // namespace

/// An argument that must be text.
static StringRef textArgument(Machine &machine, const std::optional<Value> &given) {
  if (given && given->is(Kind::String))
    return given->string();
  if (given && given->is(Kind::Undefined))
    machine.fail(given->reason());
  machine.fail(llvm::Twine("found ") + (given ? "a " + given->typeName() : "no argument") +
               ", expected a str");
  return "";
}

static int64_t countArgument(Machine &machine, const std::optional<Value> &given) {
  if (given && !given->isWhole())
    machine.fail("found a " + given->typeName() + ", expected an integer");
  return given && given->isWhole() ? given->integer() : -1;
}

//===--- Text ---------------------------------------------------------------===//

template <bool Left, bool Right>
static Value stripMethod(Machine &machine, const Value &object, Given given) {
  if (!given[0] || given[0]->is(Kind::None))
    return machine.text(strip(object.string(), Left, Right).str());
  return machine.text(strip(object.string(), textArgument(machine, given[0]), Left, Right).str());
}

template <bool FromRight>
static Value splitMethod(Machine &machine, const Value &object, Given given) {
  int64_t most = countArgument(machine, given[1]);
  machine.spend(object.string().size());
  if (machine.failed())
    return Value();
  std::vector<StringRef> parts;
  if (!given[0] || given[0]->is(Kind::None))
    parts = splitWords(object.string(), most, FromRight);
  else if (StringRef at = textArgument(machine, given[0]); !at.empty())
    parts = splitAt(object.string(), at, most, FromRight);
  else
    return machine.fail("'split' at an empty str");
  std::vector<Value> made;
  for (StringRef part : parts)
    made.push_back(Value::string(part.str()));
  return machine.list(std::move(made));
}

static Value splitLinesMethod(Machine &machine, const Value &object, Given given) {
  machine.spend(object.string().size());
  if (machine.failed())
    return Value();
  std::vector<Value> made;
  for (StringRef line : splitLines(object.string(), given[0] && given[0]->truth()))
    made.push_back(Value::string(line.str()));
  return machine.list(std::move(made));
}

/// Whether `holds` for the argument, or for one of a tuple of them.
template <typename Holds>
static Value anyOf(Machine &machine, const std::optional<Value> &given, Holds holds) {
  if (!given || !given->is(Kind::Tuple))
    return Value::boolean(holds(textArgument(machine, given)));
  return Value::boolean(llvm::any_of(
      given->items(), [&](const Value &each) { return holds(textArgument(machine, each)); }));
}

static Value startsWith(Machine &machine, const Value &object, Given given) {
  return anyOf(machine, given[0], [&](StringRef at) { return object.string().starts_with(at); });
}

static Value endsWith(Machine &machine, const Value &object, Given given) {
  return anyOf(machine, given[0], [&](StringRef at) { return object.string().ends_with(at); });
}

static Value replaceMethod(Machine &machine, const Value &object, Given given) {
  StringRef text = object.string(), from = textArgument(machine, given[0]),
            to = textArgument(machine, given[1]);
  int64_t most = countArgument(machine, given[2]);
  if (machine.failed())
    return Value();
  size_t places = from.empty() ? text.size() + 1 : text.count(from);
  machine.spend((text.size() + places * to.size()) / 64);
  return machine.failed() ? Value() : machine.text(replaceAll(text, from, to, most));
}

template <bool FromRight>
static Value findMethod(Machine &machine, const Value &object, Given given) {
  StringRef what = textArgument(machine, given[0]), text = object.string();
  machine.spend(text.size() / 64);
  size_t at = FromRight ? text.rfind(what) : text.find(what);
  return Value::integer(at == StringRef::npos ? -1 : countCharacters(text.take_front(at)));
}

static Value countMethod(Machine &machine, const Value &object, Given given) {
  if (!object.is(Kind::String)) {
    if (!given[0])
      return machine.fail("'count' takes a value");
    return Value::integer(llvm::count_if(
        object.items(), [&](const Value &item) { return machine.equal(item, *given[0]); }));
  }
  StringRef what = textArgument(machine, given[0]);
  machine.spend(object.string().size() / 64);
  return Value::integer(what.empty() ? countCharacters(object.string()) + 1
                                     : object.string().count(what));
}

static Value joinMethod(Machine &machine, const Value &object, Given given) {
  std::string joined;
  for (auto [i, item] : llvm::enumerate(machine.elements(given[0].value_or(Value())))) {
    machine.spend(object.string().size() / 64);
    StringRef part = textArgument(machine, item);
    if (machine.failed())
      return Value();
    joined += (i ? object.string() : "").str() + part.str();
  }
  return machine.text(std::move(joined));
}

template <std::string (*Change)(StringRef)>
static Value changeMethod(Machine &machine, const Value &object, Given) {
  return machine.text(Change(object.string()));
}

template <bool (*Holds)(char)>
static Value asciiMethod(Machine &machine, const Value &object, Given) {
  StringRef text = object.string();
  if (!llvm::isASCII(text))
    return machine.fail("this method of text that is not ASCII is not supported");
  return Value::boolean(!text.empty() && llvm::all_of(text, Holds));
}

static Value isSpaceMethod(Machine &, const Value &object, Given) {
  return Value::boolean(!object.string().empty() && strip(object.string(), true, true).empty());
}

template <bool Upper> static Value caseMethod(Machine &machine, const Value &object, Given) {
  return Value::boolean(machine.applyTest(Upper ? "upper" : "lower", object, {}));
}

template <bool Front>
static Value removeMethod(Machine &machine, const Value &object, Given given) {
  StringRef text = object.string(), what = textArgument(machine, given[0]);
  Front ? text.consume_front(what) : text.consume_back(what);
  return machine.text(text.str());
}

//===--- Dictionaries and lists -----------------------------------------------===//

static Value getMethod(Machine &machine, const Value &object, Given given) {
  if (!given[0])
    return machine.fail("'get' takes a key");
  machine.checkKey(*given[0]);
  const Value *value = machine.find(object.entries(), *given[0]);
  return value ? *value : given[1].value_or(Value::none());
}

static Value itemsMethod(Machine &machine, const Value &object, Given) {
  std::vector<Value> pairs;
  for (const auto &[key, value] : object.entries())
    pairs.push_back(machine.sequence(Kind::Tuple, {key, value}));
  return machine.list(std::move(pairs));
}

static Value keysMethod(Machine &machine, const Value &object, Given) {
  return machine.list(machine.elements(object));
}

static Value valuesMethod(Machine &machine, const Value &object, Given) {
  std::vector<Value> values;
  for (const auto &[key, value] : object.entries())
    values.push_back(value);
  return machine.list(std::move(values));
}

static Value copyMethod(Machine &, const Value &object, Given) { return object; }

static Value indexMethod(Machine &machine, const Value &object, Given given) {
  for (auto [i, item] : llvm::enumerate(object.items()))
    if (given[0] && machine.equal(item, *given[0]))
      return Value::integer(i);
  return machine.fail("'index': the value is not in the list");
}

static Value changesValue(Machine &machine, const Value &object, Given) {
  return machine.fail("this method would change a " + object.typeName() +
                      ", which a chat template must not");
}

//===--- The tables -----------------------------------------------------------===//

static llvm::ArrayRef<Method> textMethods() {
  static const std::vector<Method> all = {{"strip", stripMethod<true, true>, {"chars"}},
                                          {"lstrip", stripMethod<true, false>, {"chars"}},
                                          {"rstrip", stripMethod<false, true>, {"chars"}},
                                          {"split", splitMethod<false>, {"sep", "maxsplit"}},
                                          {"rsplit", splitMethod<true>, {"sep", "maxsplit"}},
                                          {"splitlines", splitLinesMethod, {"keepends"}},
                                          {"startswith", startsWith, {"prefix"}},
                                          {"endswith", endsWith, {"suffix"}},
                                          {"removeprefix", removeMethod<true>, {"prefix"}},
                                          {"removesuffix", removeMethod<false>, {"suffix"}},
                                          {"replace", replaceMethod, {"old", "new", "count"}},
                                          {"find", findMethod<false>, {"sub"}},
                                          {"rfind", findMethod<true>, {"sub"}},
                                          {"count", countMethod, {"sub"}},
                                          {"join", joinMethod, {"iterable"}},
                                          {"upper", changeMethod<toUpper>, {}},
                                          {"lower", changeMethod<toLower>, {}},
                                          {"capitalize", changeMethod<capitalize>, {}},
                                          {"title", changeMethod<titleByLetters>, {}},
                                          {"isdigit", asciiMethod<llvm::isDigit>, {}},
                                          {"isalpha", asciiMethod<llvm::isAlpha>, {}},
                                          {"isalnum", asciiMethod<llvm::isAlnum>, {}},
                                          {"isspace", isSpaceMethod, {}},
                                          {"isupper", caseMethod<true>, {}},
                                          {"islower", caseMethod<false>, {}}};
  return all;
}

static llvm::ArrayRef<Method> dictMethods() {
  static const std::vector<Method> all = {{"get", getMethod, {"key", "default"}},
                                          {"items", itemsMethod, {}},
                                          {"keys", keysMethod, {}},
                                          {"values", valuesMethod, {}},
                                          {"copy", copyMethod, {}},
                                          {"clear", changesValue, {}},
                                          {"pop", changesValue, {"key", "default"}},
                                          {"popitem", changesValue, {}},
                                          {"setdefault", changesValue, {"key", "default"}},
                                          {"update", changesValue, {"other"}}};
  return all;
}

static llvm::ArrayRef<Method> listMethods() {
  static const std::vector<Method> all = {{"count", countMethod, {"value"}},
                                          {"index", indexMethod, {"value"}},
                                          {"copy", copyMethod, {}},
                                          {"append", changesValue, {"value"}},
                                          {"clear", changesValue, {}},
                                          {"extend", changesValue, {"values"}},
                                          {"insert", changesValue, {"index", "value"}},
                                          {"pop", changesValue, {"index"}},
                                          {"remove", changesValue, {"value"}},
                                          {"reverse", changesValue, {}},
                                          {"sort", changesValue, {}}};
  return all;
}

std::optional<Value> jinja::method(const Value &object, StringRef name) {
  llvm::ArrayRef<Method> all;
  if (object.is(Kind::String) && name == "format")
    return makeFormat(object.string());
  if (object.is(Kind::String))
    all = textMethods();
  else if (object.is(Kind::Dict))
    all = dictMethods();
  else if (object.is(Kind::List) || object.is(Kind::Tuple))
    all = listMethods();
  for (const Method &each : all)
    if (each.name == name)
      return Value::function(std::make_shared<Bound>(each, object));
  return std::nullopt;
}
