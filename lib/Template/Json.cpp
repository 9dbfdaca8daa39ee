// json.dumps of Python, as the filter tojson of transformers calls it.
#include "Machine.h"
#include "Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

namespace {

class Writer {
public:
  Writer(Machine &machine, const JsonStyle &style) : machine(machine), style(style) {
    bool isIndented = style.indent >= 0;
    between = style.separators ? style.separators->first : isIndented ? "," : ", ";
    behindKey = style.separators ? style.separators->second : ": ";
  }

  void value(const Value &value);
  std::string out;

private:
  void string(StringRef text);
  void key(const Value &key);
  void newLine() {
    if (style.indent >= 0)
      out += "\n" + std::string(size_t(style.indent) * level, ' ');
  }
  template <typename Range, typename Each>
  void group(char open, char close, const Range &range, Each each) {
    out += open;
    ++level;
    bool first = true;
    for (const auto &item : range) {
      if (machine.failed())
        return;
      if (!std::exchange(first, false))
        out += between;
      newLine();
      machine.spend(1 + size_t(std::max<int64_t>(style.indent, 0)) * level / 64);
      each(item);
    }
    --level;
    if (!first)
      newLine();
    out += close;
  }

  Machine &machine;
  const JsonStyle &style;
  std::string between, behindKey;
  unsigned level = 0;
};

} // namespace

void Writer::string(StringRef text) {
  static constexpr StringRef escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
  auto unit = [&](unsigned code) { out += "\\u" + llvm::utohexstr(code, true, 4); };
  machine.spend(text.size() / 64);
  out += '"';
  for (size_t size; !text.empty(); text = text.drop_front(size)) {
    char32_t c = firstCharacter(text, size);
    size_t at = c < 0x80 ? escaped.find(char(c)) : StringRef::npos;
    if (at != StringRef::npos)
      out += {'\\', letters[at]};
    else if (c < 0x20 || (style.ascii && c > 0x7e && c < 0x10000))
      unit(c);
    else if (style.ascii && c >= 0x10000) {
      unit(0xd800 + ((c - 0x10000) >> 10));
      unit(0xdc00 + ((c - 0x10000) & 0x3ff));
    } else
      out += text.take_front(size);
  }
  out += '"';
}

void Writer::key(const Value &key) {
  if (key.is(Kind::String))
    return string(key.string());
  if (!key.isNumber() && !key.is(Kind::None)) {
    machine.fail("'tojson': a " + key.typeName() + " cannot be a key");
    return;
  }
  out += '"';
  value(key);
  out += '"';
}

void Writer::value(const Value &value) {
  switch (value.kind()) {
  case Kind::None:
    out += "null";
    return;
  case Kind::Boolean:
    out += value.boolean() ? "true" : "false";
    return;
  case Kind::Integer:
    out += std::to_string(value.integer());
    return;
  case Kind::Real: {
    std::string text = realText(value.real());
    out += text == "nan" ? "NaN" : text == "inf" ? "Infinity" : text == "-inf" ? "-Infinity" : text;
    return;
  }
  case Kind::String:
    return string(value.string());
  case Kind::List:
  case Kind::Tuple:
    return group('[', ']', value.items(), [&](const Value &item) { this->value(item); });
  case Kind::Dict: {
    Entries entries = value.entries();
    if (style.sorted)
      sortStable(machine, entries,
                 [&](const auto &a, const auto &b) { return machine.less(a.first, b.first); });
    return group('{', '}', entries, [&](const auto &entry) {
      key(entry.first);
      out += behindKey;
      this->value(entry.second);
    });
  }
  default:
    machine.fail("'tojson': a " + value.typeName() + " has no form in JSON");
  }
}

std::string jinja::toJson(Machine &machine, const Value &value, const JsonStyle &style) {
  Writer writer(machine, style);
  writer.value(value);
  return std::move(writer.out);
}
