// What stands behind `is`.
#include "Filters.h"
#include "Text.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

/// Tests that compare, and the operators that they stand for.
static StringRef comparisonOf(StringRef test) {
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> words[] = {
      {"eq", "=="}, {"equalto", "=="},    {"==", "=="},      {"ne", "!="},
      {"!=", "!="}, {"lt", "<"},          {"lessthan", "<"}, {"<", "<"},
      {"le", "<="}, {"<=", "<="},         {"gt", ">"},       {">", ">"},
      {"ge", ">="}, {"greaterthan", ">"}, {">=", ">="},      {"in", "in"}};
  for (const auto &[word, sign] : words)
    if (word == test)
      return sign;
  return "";
}

/// str.isupper and str.islower: some letter has a case, and all that have one have this.
static bool hasCase(StringRef text, bool wanted) {
  bool any = false;
  for (size_t size; !text.empty(); text = text.drop_front(size)) {
    bool upper;
    if (!isCased(firstCharacter(text, size), upper))
      continue;
    if (upper != wanted)
      return false;
    any = true;
  }
  return any;
}

static int64_t rest(Machine &machine, const Value &value, const Value &by) {
  Value result = machine.arithmetic("%", value, by);
  return result.isNumber() && result.real() == 0 ? 0 : 1;
}

namespace {
struct Test {
  StringRef name;
  bool (*holds)(Machine &, const Value &);
};
} // namespace

static constexpr Test tests[] = {
    {"defined", [](Machine &, const Value &v) { return !v.is(Kind::Undefined); }},
    {"undefined", [](Machine &, const Value &v) { return v.is(Kind::Undefined); }},
    {"none", [](Machine &, const Value &v) { return v.is(Kind::None); }},
    {"boolean", [](Machine &, const Value &v) { return v.is(Kind::Boolean); }},
    {"true", [](Machine &, const Value &v) { return v.is(Kind::Boolean) && v.boolean(); }},
    {"false", [](Machine &, const Value &v) { return v.is(Kind::Boolean) && !v.boolean(); }},
    {"integer", [](Machine &, const Value &v) { return v.is(Kind::Integer); }},
    {"float", [](Machine &, const Value &v) { return v.is(Kind::Real); }},
    {"number", [](Machine &, const Value &v) { return v.isNumber(); }},
    {"string", [](Machine &, const Value &v) { return v.is(Kind::String); }},
    {"mapping", [](Machine &, const Value &v) { return v.is(Kind::Dict); }},
    {"callable", [](Machine &, const Value &v) { return v.is(Kind::Function); }},
    {"escaped", [](Machine &, const Value &) { return false; }},
    // An undefined value has no elements, and still counts as both of these.
    {"sequence",
     [](Machine &, const Value &v) {
       return v.is(Kind::List) || v.is(Kind::Tuple) || v.is(Kind::String) || v.is(Kind::Dict) ||
              v.is(Kind::Undefined);
     }},
    {"iterable",
     [](Machine &, const Value &v) {
       return v.isSequence() || v.is(Kind::String) || v.is(Kind::Dict) || v.is(Kind::Undefined);
     }},
    {"lower", [](Machine &m, const Value &v) { return hasCase(m.textOf(v), false); }},
    {"upper", [](Machine &m, const Value &v) { return hasCase(m.textOf(v), true); }},
    {"even", [](Machine &m, const Value &v) { return rest(m, v, Value::integer(2)) == 0; }},
    {"odd", [](Machine &m, const Value &v) { return rest(m, v, Value::integer(2)) == 1; }},
    {"filter", [](Machine &m, const Value &v) { return isFilter(m.textOf(v)); }},
    {"test", [](Machine &m, const Value &v) { return isTest(m.textOf(v)); }}};

bool jinja::isTest(StringRef name) {
  return !comparisonOf(name).empty() || name == "sameas" || name == "divisibleby" ||
         llvm::any_of(tests, [&](const Test &test) { return test.name == name; });
}

bool Machine::applyTest(StringRef name, const Value &subject, Arguments arguments) {
  StringRef sign = comparisonOf(name);
  if (!sign.empty() || name == "sameas" || name == "divisibleby") {
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
      fail("the test '" + name + "' takes one argument");
      return false;
    }
    const Value &other = arguments.positional.front();
    if (name == "divisibleby")
      return rest(*this, subject, other) == 0;
    return sign.empty() ? subject.isSame(other) : compare(sign, subject, other);
  }
  const Test *test = llvm::find_if(tests, [&](const Test &each) { return each.name == name; });
  if (test == std::end(tests)) {
    fail("the test '" + name + "' is not supported");
    return false;
  }
  if (!arguments.positional.empty() || !arguments.named.empty()) {
    fail("the test '" + name + "' takes no argument");
    return false;
  }
  return test->holds(*this, subject);
}
