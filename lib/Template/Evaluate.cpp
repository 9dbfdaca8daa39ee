// Expressions.
#include "Machine.h"
#include "Text.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

Value Machine::evaluate(const Expr &expr) {
  line = expr.line;
  spend(1);
  if (failed())
    return Value();
  switch (expr.kind) {
  case Expr::Constant:
    return expr.value;
  case Expr::Name:
    if (const Value *value = scope->find(expr.name))
      return *value;
    return Value::undefined("'" + expr.name + "' is undefined");
  case Expr::List:
  case Expr::Tuple: {
    std::vector<Value> items;
    for (const ExprPtr &operand : expr.operands)
      items.push_back(evaluate(*operand));
    return sequence(expr.kind == Expr::List ? Kind::List : Kind::Tuple, std::move(items));
  }
  case Expr::Dict:
    return dictOf(expr);
  case Expr::Attribute:
    return attribute(evaluate(*expr.operands[0]), expr.name);
  case Expr::Item: {
    Value object = evaluate(*expr.operands[0]), index = evaluate(*expr.operands[1]);
    return failed() ? Value() : item(object, index);
  }
  case Expr::Slice: {
    Value parts[4] = {Value::none(), Value::none(), Value::none(), Value::none()};
    for (auto [part, operand] : llvm::zip(parts, expr.operands))
      if (operand)
        part = evaluate(*operand);
    return failed() ? Value() : slice(parts[0], parts[1], parts[2], parts[3]);
  }
  case Expr::Call:
  case Expr::Filter:
  case Expr::Test:
    return evaluateCall(expr);
  default:
    return evaluateOperator(expr);
  }
}

Value Machine::evaluateIn(std::shared_ptr<Scope> names, const Expr &expr) {
  std::swap(scope, names);
  Value value = evaluate(expr);
  std::swap(scope, names);
  return value;
}

Value Machine::dictOf(const Expr &expr) {
  Entries entries;
  for (size_t i = 0; i < expr.operands.size() && !failed(); i += 2) {
    Value key = evaluate(*expr.operands[i]), value = evaluate(*expr.operands[i + 1]);
    checkKey(key);
    if (const Value *known = find(entries, key))
      const_cast<Value &>(*known) = std::move(value);
    else
      entries.emplace_back(std::move(key), std::move(value));
  }
  return failed() ? Value() : dict(std::move(entries));
}

Value Machine::evaluateOperator(const Expr &expr) {
  auto operand = [&](unsigned i) { return evaluate(*expr.operands[i]); };
  switch (expr.kind) {
  case Expr::Condition:
    if (operand(0).truth())
      return operand(1);
    if (expr.operands[2])
      return operand(2);
    return Value::undefined("an 'if' without 'else' has no value here");
  case Expr::Or: {
    Value left = operand(0);
    return left.truth() ? left : operand(1);
  }
  case Expr::And: {
    Value left = operand(0);
    return left.truth() ? operand(1) : left;
  }
  case Expr::Not:
    return Value::boolean(!operand(0).truth());
  case Expr::Negative:
  case Expr::Positive: {
    Value value = operand(0);
    if (failed())
      return Value();
    if (!value.isNumber())
      return fail(value.is(Kind::Undefined) ? value.reason().str()
                                            : ("a " + value.typeName() + " has no sign").str());
    if (expr.kind == Expr::Positive)
      return value.is(Kind::Real) ? value : Value::integer(value.integer());
    return value.is(Kind::Real) ? Value::real(-value.real())
                                : arithmetic("-", Value::integer(0), value);
  }
  case Expr::Compare:
    return Value::boolean(comparison(expr));
  case Expr::Concatenate:
    return concatenate(expr);
  default: {
    Value left = operand(0), right = operand(1);
    line = expr.line;
    return failed() ? Value() : arithmetic(expr.name, left, right);
  }
  }
}

Value Machine::concatenate(const Expr &expr) {
  std::string joined;
  for (const ExprPtr &operand : expr.operands)
    joined += textOf(evaluate(*operand));
  return failed() ? Value() : text(std::move(joined));
}

bool Machine::comparison(const Expr &expr) {
  Value left = evaluate(*expr.operands[0]);
  for (auto [i, word] : llvm::enumerate(expr.words)) {
    Value right = evaluate(*expr.operands[i + 1]);
    if (failed() || !compare(word, left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

Arguments Machine::evaluate(const ArgumentExprs *given) {
  Arguments made;
  if (!given)
    return made;
  for (const ExprPtr &argument : given->positional)
    made.positional.push_back(evaluate(*argument));
  for (const auto &[key, argument] : given->named)
    made.named.emplace_back(key, evaluate(*argument));
  if (given->spread)
    for (Value &each : elements(evaluate(*given->spread)))
      made.positional.push_back(std::move(each));
  if (given->spreadNamed) {
    Value named = evaluate(*given->spreadNamed);
    if (!named.is(Kind::Dict))
      fail("'**' stands before a " + named.typeName() + ", expected a dict");
    else
      for (const auto &[key, value] : named.entries())
        made.named.emplace_back(textOf(key), value);
  }
  return made;
}

Value Machine::evaluateCall(const Expr &expr) {
  if (expr.kind == Expr::Call) {
    Value passed = std::exchange(caller, Value());
    Value function = evaluate(*expr.operands[0]);
    Arguments arguments = evaluate(expr.arguments.get());
    line = expr.line;
    if (failed())
      return Value();
    if (!passed.is(Kind::Undefined))
      arguments.named.emplace_back("caller", std::move(passed));
    return call(function, std::move(arguments));
  }
  Value subject = evaluate(*expr.operands[0]);
  Arguments arguments = evaluate(expr.arguments.get());
  line = expr.line;
  if (failed())
    return Value();
  if (expr.kind == Expr::Filter)
    return applyFilter(expr.name, std::move(subject), std::move(arguments));
  return Value::boolean(applyTest(expr.name, subject, std::move(arguments)));
}

Value Machine::call(const Value &function, Arguments arguments) {
  if (function.is(Kind::Undefined))
    return fail(function.reason());
  if (!function.is(Kind::Function))
    return fail("a " + function.typeName() + " cannot be called");
  return function.function().call(*this, std::move(arguments));
}

bool Machine::compare(StringRef word, const Value &left, const Value &right) {
  if (word == "==" || word == "!=")
    return equal(left, right) == (word == "==");
  if (word == "in" || word == "not in")
    return contains(right, left) == (word == "in");
  if (word == "<" || word == ">")
    return word == "<" ? less(left, right) : less(right, left);
  // Not the opposite of the two above: a NaN is neither.
  return (word == "<=" ? less(left, right) : less(right, left)) || equal(left, right);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// a sign b for integers of 64 bits; none if it overflows or is undefined (a division by zero).
static std::optional<int64_t> whole(StringRef sign, int64_t a, int64_t b) {
  int64_t result;
  if (sign == "+")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (sign == "-")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (sign == "*")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (sign == "**") {
    int64_t power = 1;
    for (int64_t i = 0; i < b && i < 64; ++i)
      if (__builtin_mul_overflow(power, a, &power))
        return std::nullopt;
    if (b < 0 || (b > 63 && a != 0 && a != 1 && a != -1))
      return std::nullopt;
    return b > 63 && a == -1 ? (b % 2 ? -1 : 1) : power;
  }
  if (b == 0 || (b == -1 && a == INT64_MIN))
    return std::nullopt;
  int64_t quotient = a / b, rest = a % b; // Python rounds down
  bool isDown = rest != 0 && (rest < 0) != (b < 0);
  return sign == "//" ? quotient - isDown : rest + (isDown ? b : 0);
}

static double ofReals(StringRef sign, double a, double b) {
  if (sign == "+" || sign == "-")
    return sign == "+" ? a + b : a - b;
  if (sign == "*" || sign == "/")
    return sign == "*" ? a * b : a / b;
  if (sign == "**")
    return std::pow(a, b);
  if (sign == "//")
    return std::floor(a / b);
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// '%s and %d' % values, for s, d and r.
static Value formatted(Machine &machine, StringRef pattern, const Value &values) {
  std::vector<Value> given =
      values.is(Kind::Tuple) ? values.items().vec() : std::vector<Value>{values};
  std::string made;
  size_t next = 0;
  while (!pattern.empty() && !machine.failed()) {
    auto [plain, behind] = pattern.split('%');
    made += plain;
    if (plain.size() == pattern.size())
      break;
    char kind = behind.empty() ? ' ' : behind.front();
    pattern = behind.drop_front(!behind.empty());
    if (kind == '%') {
      made += '%';
      continue;
    }
    if (next >= given.size())
      return machine.fail("a format has more places than values");
    const Value &value = given[next++];
    if (kind == 's')
      made += machine.textOf(value);
    else if (kind == 'r')
      made += machine.reprOf(value);
    else if (kind == 'd' && value.isNumber() && std::abs(value.real()) < 9e18)
      made += std::to_string(value.is(Kind::Real) ? int64_t(value.real()) : value.integer());
    else
      return machine.fail(llvm::Twine("the format '%") + llvm::Twine(kind) + "' of a " +
                          value.typeName() + " is not supported");
  }
  if (next < given.size() && values.is(Kind::Tuple))
    return machine.fail("a format has more values than places");
  return machine.text(std::move(made));
}

static Value repeated(Machine &machine, const Value &what, int64_t times) {
  times = std::max<int64_t>(times, 0);
  bool isText = what.is(Kind::String);
  uint64_t size = isText ? what.string().size() : what.items().size(), most = 1 << 26;
  if (size && uint64_t(times) > most / size)
    return machine.fail("a repetition is too long");
  machine.spend(size * times / (isText ? 64 : 1));
  if (machine.failed())
    return Value();
  std::string joined;
  std::vector<Value> items;
  for (int64_t i = 0; i < times && size; ++i)
    if (isText)
      joined += what.string();
    else
      llvm::append_range(items, what.items());
  return isText ? machine.text(std::move(joined)) : machine.sequence(what.kind(), std::move(items));
}

Value Machine::arithmetic(StringRef sign, const Value &left, const Value &right) {
  if (left.isNumber() && right.isNumber()) {
    bool divides = sign == "/" || sign == "//" || sign == "%";
    if (divides && right.real() == 0)
      return fail("division by zero");
    bool isReal = left.is(Kind::Real) || right.is(Kind::Real) || sign == "/" ||
                  (sign == "**" && right.real() < 0);
    if (isReal)
      return Value::real(ofReals(sign, left.real(), right.real()));
    if (std::optional<int64_t> result = whole(sign, left.integer(), right.integer()))
      return Value::integer(*result);
    return fail("a number does not fit into 64 bits");
  }
  bool isList = left.is(Kind::List) || left.is(Kind::Tuple);
  if (sign == "+" && left.is(Kind::String) && right.is(Kind::String))
    return text((left.string() + right.string()).str());
  if (sign == "+" && isList && left.kind() == right.kind()) {
    std::vector<Value> items = left.items().vec();
    llvm::append_range(items, right.items());
    return sequence(left.kind(), std::move(items));
  }
  if (sign == "%" && left.is(Kind::String))
    return formatted(*this, left.string(), right);
  bool canRepeat = isList || left.is(Kind::String);
  if (sign == "*" && canRepeat && right.isWhole())
    return repeated(*this, left, right.integer());
  if (sign == "*" && left.isWhole() &&
      (right.is(Kind::String) || right.is(Kind::List) || right.is(Kind::Tuple)))
    return repeated(*this, right, left.integer());
  for (const Value *value : {&left, &right})
    if (value->is(Kind::Undefined))
      return fail(value->reason());
  return fail("'" + sign + "' has no meaning between a " + left.typeName() + " and a " +
              right.typeName());
}
