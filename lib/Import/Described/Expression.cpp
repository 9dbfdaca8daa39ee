#include "Expression.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <limits>

using namespace llvm;
using namespace ctxc;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

class Parser {
public:
  Parser(StringRef text, function_ref<double(StringRef)> valueOf) : rest(text), valueOf(valueOf) {}

  double whole() {
    double value = comparison();
    return rest.ltrim().empty() ? value : none;
  }

private:
  bool take(StringRef symbol) {
    StringRef at = rest.ltrim();
    if (!at.consume_front(symbol))
      return false;
    rest = at;
    return true;
  }

  double comparison() {
    double left = sum();
    if (take("=="))
      return left == sum();
    if (take("<"))
      return left < sum();
    return left;
  }

  double sum() {
    double value = product();
    while (true) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    while (true) {
      if (take("*"))
        value *= factor();
      else if (take("/"))
        value /= factor();
      else if (take("%"))
        value = std::fmod(value, factor());
      else
        return value;
    }
  }

  double factor() {
    if (take("-"))
      return -factor();
    if (take("(")) {
      double value = comparison();
      return take(")") ? value : none;
    }
    rest = rest.ltrim();
    if (!rest.empty() && isDigit(rest.front()))
      return number();
    StringRef name = rest.take_while([](char c) { return isAlnum(c) || c == '_' || c == '.'; });
    rest = rest.drop_front(name.size());
    if (name.empty() || !take("("))
      return name.empty() ? none : valueOf(name);
    double value = comparison();
    if (!take(")"))
      return none;
    if (name == "sqrt")
      return std::sqrt(value);
    if (name == "floor")
      return std::floor(value);
    if (name == "bf16") // which has 8 bits
      return std::scalbn(std::rint(std::scalbn(value, 7 - std::ilogb(value))),
                         std::ilogb(value) - 7);
    return name == "f32" ? double(float(value)) : none;
  }

  double number() {
    auto isPart = [](char c) { return isDigit(c) || c == '.' || c == 'e'; };
    size_t size = 0;
    while (size < rest.size() && (isPart(rest[size]) || (size && rest[size - 1] == 'e' &&
                                                         (rest[size] == '-' || rest[size] == '+'))))
      ++size;
    double value;
    bool bad = rest.take_front(size).getAsDouble(value);
    rest = rest.drop_front(size);
    return bad ? none : value;
  }

  StringRef rest;
  function_ref<double(StringRef)> valueOf;
};

} // namespace

double described::evaluate(StringRef text, function_ref<double(StringRef)> valueOf) {
  return Parser(text, valueOf).whole();
}
