// Filters that take the name of another filter or of a test: map, select and their like.
#include "Filters.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

bool jinja::isSelection(StringRef name) {
  for (StringRef known : {"map", "select", "reject", "selectattr", "rejectattr"})
    if (name == known)
      return true;
  return false;
}

Value jinja::attributeByPath(Machine &machine, const Value &value, const Value &path) {
  if (!path.is(Kind::String))
    return machine.item(value, path);
  Value found = value;
  for (StringRef part : llvm::split(path.string(), '.')) {
    int64_t index;
    bool isNumber = !part.getAsInteger(10, index);
    found = machine.item(found, isNumber ? Value::integer(index) : Value::string(part.str()));
  }
  return found;
}

/// The first argument, which is taken away; it must be text.
static std::string takeName(Machine &machine, StringRef what, Arguments &arguments) {
  if (arguments.positional.empty() || !arguments.positional.front().is(Kind::String)) {
    machine.fail("'" + what + "' takes a name");
    return "";
  }
  std::string name = arguments.positional.front().string().str();
  arguments.positional.erase(arguments.positional.begin());
  return name;
}

static Value map(Machine &machine, const Value &subject, Arguments arguments) {
  std::vector<Value> made;
  bool isAttribute = arguments.positional.empty();
  if (isAttribute) {
    auto bound = bindArguments(machine, "map", std::move(arguments), {"attribute", "default"});
    if (!bound[0])
      machine.fail("'map' takes a filter, or attribute=NAME");
    for (const Value &item : machine.elements(subject)) {
      if (machine.failed())
        return Value();
      Value value = attributeByPath(machine, item, *bound[0]);
      made.push_back(value.is(Kind::Undefined) && bound[1] ? *bound[1] : value);
    }
    return machine.sequence(Kind::Generator, std::move(made));
  }
  std::string filter = takeName(machine, "map", arguments);
  for (const Value &item : machine.elements(subject)) {
    if (machine.failed())
      return Value();
    made.push_back(machine.applyFilter(filter, item, arguments));
  }
  return machine.sequence(Kind::Generator, std::move(made));
}

Value jinja::select(Machine &machine, StringRef name, const Value &subject, Arguments arguments) {
  // As Jinja does, which then looks at no argument either: none and 0 have no elements here.
  if (!subject.is(Kind::Generator) && !subject.truth())
    return machine.sequence(Kind::Generator, {});
  if (name == "map")
    return map(machine, subject, std::move(arguments));
  bool hasPath = name.ends_with("attr"), keeps = name.starts_with("select");
  Value path;
  if (hasPath) {
    if (arguments.positional.empty())
      return machine.fail("'" + name + "' takes the name of an attribute");
    path = arguments.positional.front();
    arguments.positional.erase(arguments.positional.begin());
  }
  std::string test;
  if (!arguments.positional.empty())
    test = takeName(machine, name, arguments);
  std::vector<Value> chosen;
  for (const Value &item : machine.elements(subject)) {
    Value value = hasPath ? attributeByPath(machine, item, path) : item;
    if (machine.failed())
      return Value();
    bool holds = test.empty() ? value.truth() : machine.applyTest(test, value, arguments);
    if (holds == keeps)
      chosen.push_back(item);
  }
  return machine.sequence(Kind::Generator, std::move(chosen));
}
