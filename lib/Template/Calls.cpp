// What a template can call: macros, and the functions of the environment.
#include "Machine.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;
using Kind = Value::Kind;

std::vector<std::optional<Value>> jinja::bindArguments(Machine &machine, StringRef what,
                                                       Arguments arguments,
                                                       llvm::ArrayRef<StringRef> parameters) {
  std::vector<std::optional<Value>> bound(parameters.size());
  if (arguments.positional.size() > parameters.size())
    machine.fail("'" + what + "' takes " + Twine(parameters.size()) + " arguments, found " +
                 Twine(arguments.positional.size()));
  else
    llvm::copy(arguments.positional, bound.begin());
  for (auto &[key, value] : arguments.named) {
    const auto *at = llvm::find(parameters, key);
    if (at == parameters.end())
      machine.fail("'" + what + "' has no argument '" + key + "'");
    else if (bound[at - parameters.begin()])
      machine.fail("'" + what + "' is given the argument '" + key + "' twice");
    else
      bound[at - parameters.begin()] = std::move(value);
  }
  return bound;
}

namespace {

class Macro final : public Callable {
public:
  Macro(const Statement &macro, std::shared_ptr<Scope> scope)
      : macro(macro), scope(std::move(scope)) {}

  Value call(Machine &machine, Arguments arguments) const override;

private:
  const Statement &macro;
  std::shared_ptr<Scope> scope;
};

/// A function of the environment.
class Function final : public Callable {
public:
  using Body = Value (*)(Machine &, Arguments);
  explicit Function(Body body) : body(body) {}
  Value call(Machine &machine, Arguments arguments) const override {
    return body(machine, std::move(arguments));
  }

private:
  Body body;
};

class Cycle final : public Callable {
public:
  explicit Cycle(int64_t index) : index(index) {}
  Value call(Machine &machine, Arguments arguments) const override {
    if (arguments.positional.empty())
      return machine.fail("'cycle' has nothing to choose from");
    return arguments.positional[index % arguments.positional.size()];
  }

private:
  int64_t index;
};

/// Whether what it is called with differs from what it was called with before, in the same loop.
class Changed final : public Callable {
public:
  explicit Changed(std::shared_ptr<std::optional<std::vector<Value>>> last)
      : last(std::move(last)) {}
  Value call(Machine &machine, Arguments arguments) const override {
    if (!arguments.named.empty())
      return machine.fail("'changed' has no argument '" + arguments.named.front().first + "'");
    const std::vector<Value> &now = arguments.positional;
    bool isSame = *last && (*last)->size() == now.size();
    for (size_t i = 0; isSame && i < now.size(); ++i)
      isSame = machine.equal((**last)[i], now[i]);
    if (!isSame)
      *last = now;
    return Value::boolean(!isSame);
  }

private:
  std::shared_ptr<std::optional<std::vector<Value>>> last;
};

} // namespace

Value Macro::call(Machine &machine, Arguments arguments) const {
  Machine::Deeper deeper(machine);
  StringRef name = macro.text.empty() ? "caller" : StringRef(macro.text);
  auto names = std::make_shared<Scope>();
  names->around = scope;
  std::vector<Value> surplus;
  Entries surplusNamed;
  llvm::ArrayRef<Parameter> parameters = macro.parameters;
  std::vector<std::optional<Value>> bound(parameters.size());
  for (auto [i, value] : llvm::enumerate(arguments.positional))
    if (i < bound.size())
      bound[i] = std::move(value);
    else
      surplus.push_back(std::move(value));
  for (auto &argument : arguments.named) {
    auto &[key, value] = argument;
    const Parameter *at = llvm::find_if(
        parameters, [&](const Parameter &each) { return each.name == argument.first; });
    if (at != parameters.end() && bound[at - parameters.begin()])
      return machine.fail("'" + name + "' is given the argument '" + key + "' twice");
    if (at != parameters.end())
      bound[at - parameters.begin()] = std::move(value);
    else if (key == "caller")
      names->set(key, std::move(value));
    else
      surplusNamed.emplace_back(Value::string(key), std::move(value));
  }
  names->set("varargs", machine.sequence(Kind::Tuple, std::move(surplus)));
  names->set("kwargs", machine.dict(std::move(surplusNamed)));
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    if (bound[i])
      names->set(parameter.name, std::move(*bound[i]));
    else if (parameter.otherwise)
      names->set(parameter.name, machine.evaluateIn(names, *parameter.otherwise));
    else
      names->set(parameter.name,
                 Value::undefined("parameter '" + parameter.name + "' was not provided"));
  }
  std::string text = machine.failed() ? "" : machine.render(macro.bodies.front(), names);
  return machine.failed() ? Value() : machine.text(std::move(text));
}

Value jinja::makeMacro(const Statement &macro, std::shared_ptr<Scope> scope) {
  return Value::function(std::make_shared<Macro>(macro, std::move(scope)));
}

Value jinja::makeChanged() {
  return Value::function(
      std::make_shared<Changed>(std::make_shared<std::optional<std::vector<Value>>>()));
}

Value jinja::makeCycle(int64_t index) { return Value::function(std::make_shared<Cycle>(index)); }

/// A dictionary of one dictionary or of pairs, and of named arguments.
static Entries entriesOf(Machine &machine, StringRef what, const Arguments &arguments) {
  Entries entries;
  auto set = [&](const Value &key, const Value &value) {
    machine.checkKey(key);
    if (const Value *known = machine.find(entries, key))
      const_cast<Value &>(*known) = value;
    else
      entries.emplace_back(key, value);
  };
  if (arguments.positional.size() > 1)
    machine.fail("'" + what + "' takes one dictionary");
  else if (!arguments.positional.empty() && arguments.positional.front().is(Kind::Dict))
    entries = arguments.positional.front().entries();
  else if (!arguments.positional.empty())
    for (const Value &pair : machine.elements(arguments.positional.front())) {
      std::vector<Value> both = machine.elements(pair);
      if (both.size() == 2)
        set(both[0], both[1]);
      else
        machine.fail("'" + what + "' is made of pairs");
    }
  for (const auto &[key, value] : arguments.named)
    set(Value::string(key), value);
  return entries;
}

static Value makeRange(Machine &machine, Arguments arguments) {
  constexpr int64_t most = 100000; // the sandbox's limit
  int64_t bounds[3] = {0, 0, 1};
  size_t count = arguments.positional.size();
  if (count < 1 || count > 3 || !arguments.named.empty())
    return machine.fail("'range' takes one, two or three arguments");
  for (auto [i, bound] : llvm::enumerate(arguments.positional)) {
    if (!bound.isWhole())
      return machine.fail("a bound of 'range' is a " + bound.typeName() + ", expected an integer");
    bounds[count == 1 ? 1 : i] = bound.integer();
  }
  auto [from, to, by] = bounds;
  if (by == 0)
    return machine.fail("the step of 'range' is zero");
  std::vector<Value> items;
  for (__int128 i = from; by > 0 ? i < to : i > to; i += by) {
    items.push_back(Value::integer(int64_t(i)));
    if (int64_t(items.size()) > most)
      return machine.fail("a range has more than " + Twine(most) + " numbers");
  }
  return machine.list(std::move(items));
}

static Value makeDict(Machine &machine, Arguments arguments) {
  Entries entries = entriesOf(machine, "dict", arguments);
  return machine.failed() ? Value() : machine.dict(std::move(entries));
}

static Value makeNamespace(Machine &machine, Arguments arguments) {
  Entries entries = entriesOf(machine, "namespace", arguments);
  for (const auto &[key, value] : entries)
    if (key.is(Kind::String) && key.string().starts_with("_"))
      machine.fail("the attribute '" + key.string() + "' of a namespace begins with '_'");
  return machine.failed() ? Value() : machine.space(std::move(entries));
}

static Value raiseException(Machine &machine, Arguments arguments) {
  auto bound = bindArguments(machine, "raise_exception", std::move(arguments), {"message"});
  if (machine.failed())
    return Value();
  std::string message = bound[0] ? machine.textOf(*bound[0]) : "";
  return machine.fail("the template refuses these messages: " + message);
}

static Value currentTime(Machine &machine, Arguments arguments) {
  auto bound = bindArguments(machine, "strftime_now", std::move(arguments), {"format"});
  if (machine.failed())
    return Value();
  if (!bound[0] || !bound[0]->is(Kind::String))
    return machine.fail("'strftime_now' takes a format");
  // Python's time here belongs to no zone; a space at the end tells an empty result from one that
  // does not fit.
  std::string format;
  StringRef given = bound[0]->string();
  for (size_t i = 0; i < given.size(); ++i) {
    StringRef two = given.substr(i, 2);
    if (two == "%f")
      return machine.fail("the format of 'strftime_now' has %f, which is not supported");
    if (two.starts_with("%") && two.size() == 2)
      ++i;
    if (two != "%Z" && two != "%z")
      format += two.starts_with("%") ? two : two.take_front();
  }
  format += " ";
  char text[1024];
  size_t size = std::strftime(text, sizeof(text), format.c_str(), &machine.now);
  if (!size || StringRef(format).contains('\0'))
    return machine.fail("the format of 'strftime_now' is not supported");
  return machine.text(std::string(text, size - 1));
}

std::vector<std::pair<std::string, Value>> jinja::globalFunctions() {
  std::vector<std::pair<std::string, Value>> all;
  auto add = [&](StringRef name, Function::Body body) {
    all.emplace_back(name.str(), Value::function(std::make_shared<Function>(body)));
  };
  add("range", makeRange);
  add("dict", makeDict);
  add("namespace", makeNamespace);
  add("raise_exception", raiseException);
  add("strftime_now", currentTime);
  return all;
}
