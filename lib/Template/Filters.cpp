// The filters that have a subject and arguments of their own; those that take another filter or a
// test are in Selections.cpp.
#include "Filters.h"
#include "Text.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

using Given = llvm::ArrayRef<std::optional<Value>>;

static bool flag(const std::optional<Value> &given, bool otherwise = false) {
  return given ? given->truth() : otherwise;
}

static int64_t number(Machine &machine, const std::optional<Value> &given, int64_t otherwise) {
  if (!given || given->is(Kind::None))
    return otherwise;
  if (!given->isWhole()) {
    machine.fail("found a " + given->typeName() + ", expected an integer");
    return otherwise;
  }
  return given->integer();
}

//===--- Text ---------------------------------------------------------------===//

static Value trimFilter(Machine &machine, const Value &subject, Given given) {
  std::string text = machine.textOf(subject);
  if (given[0] && !given[0]->is(Kind::None))
    return machine.text(strip(text, machine.textOf(*given[0]), true, true).str());
  return machine.text(strip(text, true, true).str());
}

static Value upperFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(toUpper(machine.textOf(subject)));
}

static Value lowerFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(toLower(machine.textOf(subject)));
}

static Value capitalizeFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(capitalize(machine.textOf(subject)));
}

static Value titleFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(titleByWords(machine.textOf(subject)));
}

static Value stringFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(machine.textOf(subject));
}

/// Marks text as markup, which changes nothing where nothing is escaped.
static Value safeFilter(Machine &machine, const Value &subject, Given) {
  return machine.text(machine.textOf(subject));
}

static Value replaceFilter(Machine &machine, const Value &subject, Given given) {
  if (!given[0] || !given[1])
    return machine.fail("'replace' takes what to replace, and by what");
  std::string text = machine.textOf(subject), from = machine.textOf(*given[0]),
              to = machine.textOf(*given[1]);
  int64_t most = number(machine, given[2], -1);
  size_t places = from.empty() ? text.size() + 1 : StringRef(text).count(from);
  machine.spend((text.size() + places * to.size()) / 64);
  return machine.failed() ? Value() : machine.text(replaceAll(text, from, to, most));
}

static Value indentFilter(Machine &machine, const Value &subject, Given given) {
  int64_t width = 4;
  bool isText = given[0] && given[0]->is(Kind::String);
  if (!isText)
    width = std::clamp<int64_t>(number(machine, given[0], 4), 0, 1000);
  std::string by = isText ? given[0]->string().str() : std::string(width, ' ');
  std::string text = machine.textOf(subject) + "\n", made;
  bool first = flag(given[1]), blank = flag(given[2]);
  std::vector<StringRef> lines = splitLines(text, /*keepEnds=*/false);
  machine.spend((text.size() + lines.size() * by.size()) / 64);
  if (machine.failed())
    return Value();
  for (auto [i, line] : llvm::enumerate(lines)) {
    made += i ? "\n" : "";
    made += (i ? blank || !line.empty() : first) ? by : "";
    made += line;
  }
  return machine.text(std::move(made));
}

static Value tojsonFilter(Machine &machine, const Value &subject, Given given) {
  JsonStyle style;
  style.ascii = flag(given[0]);
  style.indent = std::min<int64_t>(number(machine, given[1], -1), 100);
  if (given[2] && !given[2]->is(Kind::None)) {
    std::vector<Value> both = machine.elements(*given[2]);
    if (both.size() != 2)
      return machine.fail("'tojson' takes two separators");
    style.separators = {machine.textOf(both[0]), machine.textOf(both[1])};
  }
  style.sorted = flag(given[3]);
  std::string made = machine.failed() ? "" : toJson(machine, subject, style);
  return machine.failed() ? Value() : machine.text(std::move(made));
}

//===--- Numbers ------------------------------------------------------------===//

static Value intFilter(Machine &machine, const Value &subject, Given given) {
  Value otherwise = given[0].value_or(Value::integer(0));
  if (subject.isWhole())
    return Value::integer(subject.integer());
  if (subject.is(Kind::Real))
    return std::abs(subject.real()) < 9e18 ? Value::integer(int64_t(subject.real())) : otherwise;
  int64_t value;
  double real;
  if (!subject.is(Kind::String))
    return otherwise;
  StringRef text = strip(subject.string(), true, true);
  if (!text.getAsInteger(10, value))
    return Value::integer(value);
  bool isReal = !text.getAsDouble(real) && std::abs(real) < 9e18;
  return isReal ? Value::integer(int64_t(real)) : otherwise;
}

static Value floatFilter(Machine &machine, const Value &subject, Given given) {
  double value;
  if (subject.isNumber())
    return Value::real(subject.real());
  if (subject.is(Kind::String) && !strip(subject.string(), true, true).getAsDouble(value))
    return Value::real(value);
  return given[0].value_or(Value::real(0));
}

static Value absFilter(Machine &machine, const Value &subject, Given) {
  if (!subject.isNumber())
    return machine.fail("'abs' of a " + subject.typeName());
  if (subject.is(Kind::Real))
    return Value::real(std::abs(subject.real()));
  return subject.integer() < 0 ? machine.arithmetic("-", Value::integer(0), subject)
                               : Value::integer(subject.integer());
}

static Value roundFilter(Machine &machine, const Value &subject, Given given) {
  if (!subject.isNumber())
    return machine.fail("'round' of a " + subject.typeName());
  int64_t digits = std::clamp<int64_t>(number(machine, given[0], 0), -15, 15);
  std::string how = given[1] ? machine.textOf(*given[1]) : "common";
  double scale = std::pow(10.0, double(digits)), scaled = subject.real() * scale;
  if (how != "common" && how != "ceil" && how != "floor")
    return machine.fail("'round' knows common, ceil and floor");
  // round() of Python takes the even one of two equally near numbers.
  double whole = how == "ceil"    ? std::ceil(scaled)
                 : how == "floor" ? std::floor(scaled)
                                  : std::nearbyint(scaled);
  return Value::real(whole / scale);
}

//===--- Lists and dictionaries -----------------------------------------------===//

static Value lengthFilter(Machine &machine, const Value &subject, Given) {
  return Value::integer(machine.lengthOf(subject));
}

static Value listFilter(Machine &machine, const Value &subject, Given) {
  return machine.list(machine.elements(subject));
}

static Value firstFilter(Machine &machine, const Value &subject, Given) {
  std::vector<Value> items = machine.elements(subject);
  return items.empty() ? Value::undefined("there is no first item") : items.front();
}

static Value lastFilter(Machine &machine, const Value &subject, Given) {
  if (subject.is(Kind::Generator))
    return machine.fail("a generator has no last item; make it a list");
  std::vector<Value> items = machine.elements(subject);
  return items.empty() ? Value::undefined("there is no last item") : items.back();
}

static Value reverseFilter(Machine &machine, const Value &subject, Given) {
  std::vector<Value> items = machine.elements(subject);
  std::reverse(items.begin(), items.end());
  if (!subject.is(Kind::String))
    return machine.sequence(Kind::Generator, std::move(items));
  std::string joined;
  for (const Value &item : items)
    joined += item.string();
  return machine.text(std::move(joined));
}

static Value itemsFilter(Machine &machine, const Value &subject, Given) {
  std::vector<Value> pairs;
  if (subject.is(Kind::Dict))
    for (const auto &[key, value] : subject.entries())
      pairs.push_back(machine.sequence(Kind::Tuple, {key, value}));
  else if (!subject.is(Kind::Undefined))
    return machine.fail("'items' of a " + subject.typeName() + ", expected a dict");
  return machine.sequence(Kind::Generator, std::move(pairs));
}

static Value defaultFilter(Machine &, const Value &subject, Given given) {
  bool isMissing = subject.is(Kind::Undefined) || (flag(given[1]) && !subject.truth());
  return isMissing ? given[0].value_or(Value::string("")) : subject;
}

static Value joinFilter(Machine &machine, const Value &subject, Given given) {
  std::string between = given[0] ? machine.textOf(*given[0]) : "", joined;
  std::vector<Value> items = machine.elements(subject);
  for (auto [i, item] : llvm::enumerate(items)) {
    if (given[1])
      item = attributeByPath(machine, item, *given[1]);
    machine.spend(1 + between.size() / 64);
    if (machine.failed())
      return Value();
    joined += (i ? between : "") + machine.textOf(item);
  }
  return machine.text(std::move(joined));
}

static Value sumFilter(Machine &machine, const Value &subject, Given given) {
  Value total = given[1].value_or(Value::integer(0));
  for (const Value &item : machine.elements(subject)) {
    if (machine.failed())
      return Value();
    total =
        machine.arithmetic("+", total, given[0] ? attributeByPath(machine, item, *given[0]) : item);
  }
  return total;
}

/// What an order compares: without `caseSensitive`, text in lower case.
static Value orderKey(Machine &machine, const Value &value, bool caseSensitive) {
  return value.is(Kind::String) && !caseSensitive ? machine.text(toLower(value.string())) : value;
}

/// The list of the items, in the order of their keys.
static Value sortedItems(Machine &machine, std::vector<std::pair<Value, Value>> keyed,
                         bool reversed) {
  sortStable(machine, keyed, [&](const auto &a, const auto &b) {
    return reversed ? machine.less(b.first, a.first) : machine.less(a.first, b.first);
  });
  std::vector<Value> items;
  for (auto &[key, item] : keyed)
    items.push_back(std::move(item));
  return machine.list(std::move(items));
}

static Value sortFilter(Machine &machine, const Value &subject, Given given) {
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value &item : machine.elements(subject)) {
    bool hasPath = given[2] && !given[2]->is(Kind::None);
    Value key = hasPath ? attributeByPath(machine, item, *given[2]) : item;
    pairs.emplace_back(orderKey(machine, key, flag(given[1])), item);
  }
  return sortedItems(machine, std::move(pairs), flag(given[0]));
}

static Value dictsortFilter(Machine &machine, const Value &subject, Given given) {
  if (!subject.is(Kind::Dict))
    return machine.fail(subject.is(Kind::Undefined)
                            ? subject.reason().str()
                            : ("'dictsort' of a " + subject.typeName()).str());
  std::string by = given[1] ? machine.textOf(*given[1]) : "key";
  if (by != "key" && by != "value")
    return machine.fail("'dictsort' sorts by key or by value");
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto &[key, value] : subject.entries())
    pairs.emplace_back(orderKey(machine, by == "key" ? key : value, flag(given[0])),
                       machine.sequence(Kind::Tuple, {key, value}));
  return sortedItems(machine, std::move(pairs), flag(given[2]));
}

static Value uniqueFilter(Machine &machine, const Value &subject, Given given) {
  std::vector<Value> seen, items;
  for (const Value &item : machine.elements(subject)) {
    Value key = orderKey(machine, given[1] ? attributeByPath(machine, item, *given[1]) : item,
                         flag(given[0]));
    if (llvm::any_of(seen, [&](const Value &other) { return machine.equal(key, other); }))
      continue;
    seen.push_back(key);
    items.push_back(item);
  }
  return machine.sequence(Kind::Generator, std::move(items));
}

static Value extreme(Machine &machine, const Value &subject, Given given, bool largest) {
  std::optional<std::pair<Value, Value>> best;
  for (const Value &item : machine.elements(subject)) {
    Value key = orderKey(machine, given[1] ? attributeByPath(machine, item, *given[1]) : item,
                         flag(given[0]));
    if (!best || (largest ? machine.less(best->first, key) : machine.less(key, best->first)))
      best = {key, item};
  }
  return best ? best->second : Value::undefined("there is no item to choose from");
}

static Value minFilter(Machine &machine, const Value &subject, Given given) {
  return extreme(machine, subject, given, /*largest=*/false);
}
static Value maxFilter(Machine &machine, const Value &subject, Given given) {
  return extreme(machine, subject, given, /*largest=*/true);
}

static Value attrFilter(Machine &machine, const Value &subject, Given given) {
  if (!given[0] || !given[0]->is(Kind::String))
    return machine.fail("'attr' takes the name of an attribute");
  // Attributes alone, and no entries of a dictionary.
  if (subject.is(Kind::Namespace))
    return machine.attribute(subject, given[0]->string());
  std::optional<Value> bound = method(subject, given[0]->string());
  return bound ? *bound
               : Value::undefined(
                     ("a " + subject.typeName() + " has no attribute '" + given[0]->string() + "'")
                         .str());
}

//===--- The table ----------------------------------------------------------===//

namespace {
struct Filter {
  StringRef name;
  Value (*apply)(Machine &, const Value &, Given);
  std::vector<StringRef> parameters;
};
} // namespace

static llvm::ArrayRef<Filter> filters() {
  static const std::vector<Filter> all = {
      {"abs", absFilter, {}},
      {"attr", attrFilter, {"name"}},
      {"capitalize", capitalizeFilter, {}},
      {"count", lengthFilter, {}},
      {"d", defaultFilter, {"default_value", "boolean"}},
      {"default", defaultFilter, {"default_value", "boolean"}},
      {"dictsort", dictsortFilter, {"case_sensitive", "by", "reverse"}},
      {"first", firstFilter, {}},
      {"float", floatFilter, {"default"}},
      {"indent", indentFilter, {"width", "first", "blank"}},
      {"int", intFilter, {"default"}},
      {"items", itemsFilter, {}},
      {"join", joinFilter, {"d", "attribute"}},
      {"last", lastFilter, {}},
      {"length", lengthFilter, {}},
      {"list", listFilter, {}},
      {"lower", lowerFilter, {}},
      {"max", maxFilter, {"case_sensitive", "attribute"}},
      {"min", minFilter, {"case_sensitive", "attribute"}},
      {"replace", replaceFilter, {"old", "new", "count"}},
      {"reverse", reverseFilter, {}},
      {"round", roundFilter, {"precision", "method"}},
      {"safe", safeFilter, {}},
      {"sort", sortFilter, {"reverse", "case_sensitive", "attribute"}},
      {"string", stringFilter, {}},
      {"sum", sumFilter, {"attribute", "start"}},
      {"title", titleFilter, {}},
      {"tojson", tojsonFilter, {"ensure_ascii", "indent", "separators", "sort_keys"}},
      {"trim", trimFilter, {"chars"}},
      {"unique", uniqueFilter, {"case_sensitive", "attribute"}},
      {"upper", upperFilter, {}}};
  return all;
}

bool jinja::isFilter(StringRef name) {
  return isSelection(name) ||
         llvm::any_of(filters(), [&](const Filter &filter) { return filter.name == name; });
}

Value Machine::applyFilter(StringRef name, Value subject, Arguments arguments) {
  if (isSelection(name))
    return select(*this, name, subject, std::move(arguments));
  const Filter *filter =
      llvm::find_if(filters(), [&](const Filter &each) { return each.name == name; });
  if (filter == filters().end())
    return fail("the filter '" + name + "' is not supported");
  auto bound = bindArguments(*this, name, std::move(arguments), filter->parameters);
  return failed() ? Value() : filter->apply(*this, subject, bound);
}
