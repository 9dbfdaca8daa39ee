// The method `format` of text: fields in braces, each with a conversion and a specification.
#include "Machine.h"
#include "Text.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstdio>

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;
using Kind = Value::Kind;

namespace {

/// [[fill]align][sign][0][width][,][.precision][type]
struct Specification {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0;
  bool groups = false;
  size_t width = 0;
  std::optional<size_t> precision;

  static std::optional<Specification> read(StringRef text);
};

class Format final : public Callable {
public:
  explicit Format(std::string pattern) : pattern(std::move(pattern)) {}
  Value call(Machine &machine, Arguments arguments) const override;

private:
  std::string pattern;
};

} // namespace

static constexpr StringRef aligns = "<>^=";

std::optional<Specification> Specification::read(StringRef text) {
  Specification spec;
  constexpr size_t most = 10000;
  auto number = [&](size_t &to) {
    StringRef digits = text.take_while(llvm::isDigit);
    text = text.drop_front(digits.size());
    return digits.empty() || (!digits.getAsInteger(10, to) && to <= most);
  };
  StringRef first = text.empty() ? "" : characters(text).front();
  if (text.size() > first.size() && aligns.contains(text[first.size()])) {
    spec.fill = first.str();
    spec.align = text[first.size()];
    text = text.drop_front(first.size() + 1);
  } else if (!text.empty() && aligns.contains(text[0])) {
    spec.align = text[0];
    text = text.drop_front();
  }
  if (!text.empty() && StringRef("+- ").contains(text[0])) {
    spec.sign = text[0];
    text = text.drop_front();
  }
  if (text.starts_with("0") && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  if (!number(spec.width))
    return std::nullopt;
  spec.groups = text.consume_front(",");
  if (text.consume_front(".")) {
    size_t precision = 0;
    if (text.empty() || !llvm::isDigit(text[0]) || !number(precision))
      return std::nullopt;
    spec.precision = precision;
  }
  if (!text.empty()) {
    spec.type = text[0];
    text = text.drop_front();
  }
  return text.empty() ? std::optional(spec) : std::nullopt;
}

/// Digits in groups of three before the point.
static std::string grouped(StringRef digits) {
  StringRef whole = digits.take_while(llvm::isDigit), rest = digits.drop_front(whole.size());
  std::string made;
  for (auto [i, c] : llvm::enumerate(whole)) {
    if (i && (whole.size() - i) % 3 == 0)
      made += ',';
    made += c;
  }
  return made + rest.str();
}

/// A number without its sign; none where the type does not fit.
static std::optional<std::string> digitsOf(const Value &value, const Specification &spec) {
  if (value.isWhole() && (!spec.type || spec.type == 'd')) {
    if (spec.precision)
      return std::nullopt;
    int64_t number = value.integer();
    return std::to_string(number < 0 ? 0 - uint64_t(number) : uint64_t(number));
  }
  double number = std::abs(value.real());
  if (!spec.type && !spec.precision)
    return realText(number);
  if (!StringRef("feg%").contains(spec.type) || !spec.type || !std::isfinite(number))
    return std::nullopt;
  char text[12000], form[] = {'%', '.', '*', spec.type == '%' ? 'f' : spec.type, 0};
  std::snprintf(text, sizeof(text), form, int(spec.precision.value_or(6)),
                spec.type == '%' ? number * 100 : number);
  return std::string(text) + (spec.type == '%' ? "%" : "");
}

/// The value as the specification wants it; none where Python has no such form, or none is known
/// here.
static std::optional<std::string> formatted(Machine &machine, const Value &value, StringRef text) {
  std::optional<Specification> spec = Specification::read(text);
  if (text.empty())
    return machine.textOf(value);
  if (!spec)
    return std::nullopt;
  std::string body, sign;
  if (value.is(Kind::String)) {
    if ((spec->type && spec->type != 's') || spec->groups || spec->align == '=' ||
        spec->sign != '-')
      return std::nullopt;
    std::vector<StringRef> all = characters(value.string());
    for (StringRef c : llvm::ArrayRef(all).take_front(spec->precision.value_or(all.size())))
      body += c;
  } else if (value.isNumber() && (!value.is(Kind::Boolean) || spec->type)) {
    std::optional<std::string> digits = digitsOf(value, *spec);
    if (!digits)
      return std::nullopt;
    body = spec->groups ? grouped(*digits) : *digits;
    const bool isNegative = value.isWhole() ? value.integer() < 0 : std::signbit(value.real());
    sign = isNegative ? "-" : spec->sign == '-' ? "" : std::string(1, spec->sign);
  } else {
    return std::nullopt;
  }
  const size_t taken = countCharacters(body) + sign.size();
  const size_t missing = spec->width > taken ? spec->width - taken : 0;
  if (spec->groups && spec->fill == "0" && missing)
    return std::nullopt; // which has commas among the zeros
  char align = spec->align ? spec->align : value.is(Kind::String) ? '<' : '>';
  size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, behind;
  for (size_t i = 0; i < missing; ++i)
    (i < left ? before : behind) += spec->fill;
  return align == '=' ? sign + before + body : before + sign + body + behind;
}

Value Format::call(Machine &machine, Arguments arguments) const {
  std::string made;
  StringRef rest = pattern;
  size_t next = 0;
  while (!rest.empty() && !machine.failed()) {
    machine.spend(1);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      made += rest[0];
      rest = rest.drop_front(2);
      continue;
    }
    if (rest[0] == '}')
      return machine.fail("'format': found a single '}'");
    if (rest[0] != '{') {
      size_t end = std::min(rest.find_first_of("{}"), rest.size());
      made += rest.take_front(end);
      rest = rest.drop_front(end);
      continue;
    }
    auto [field, behind] = rest.drop_front().split('}');
    if (behind.empty() && !rest.ends_with("}"))
      return machine.fail("'format': a field has no '}'");
    rest = behind;
    auto [what, spec] = field.split(':');
    const bool asRepr = what.consume_back("!r");
    what.consume_back("!s");
    size_t index = next;
    const Value *value = nullptr;
    if (what.empty())
      ++next;
    if (what.empty() || !what.getAsInteger(10, index)) {
      value = index < arguments.positional.size() ? &arguments.positional[index] : nullptr;
    } else {
      for (const auto &[name, named] : arguments.named)
        if (name == what)
          value = &named;
    }
    if (!value)
      return machine.fail("'format' has no argument for the field '" + field + "'");
    Value shown = asRepr ? machine.text(machine.reprOf(*value)) : *value;
    std::optional<std::string> text = formatted(machine, shown, spec);
    if (!text)
      return machine.fail("'format': the specification '" + spec + "' of a " + shown.typeName() +
                          " is not supported");
    made += *text;
    machine.spend(text->size() / 64);
  }
  return machine.failed() ? Value() : machine.text(std::move(made));
}

Value jinja::makeFormat(StringRef pattern) {
  return Value::function(std::make_shared<Format>(pattern.str()));
}
