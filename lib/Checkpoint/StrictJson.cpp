#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

using namespace llvm;
using namespace ctxc;

std::string ctxc::quoted(StringRef text) {
  constexpr size_t limit = 120;
  std::string out = "'";
  for (unsigned char c : text.take_front(limit)) {
    if (c < 0x20 || c == 0x7f)
      out += "\\x" + utohexstr(c, /*LowerCase=*/true, /*Width=*/2);
    else
      out += static_cast<char>(c);
  }
  return out + (text.size() > limit ? "…'" : "'");
}

Error StrictJson::fail(const Twine &message) const {
  StringRef rest = text.drop_front(pos);
  if (pos == 0 && rest.starts_with("\xef\xbb\xbf"))
    return makeError(name + ": begins with a byte order mark, which JSON has not; save the file as "
                            "UTF-8 without one");
  if (rest.starts_with("//") || rest.starts_with("/*"))
    return makeError(name + ": at byte " + Twine(pos) +
                     ": found a comment, which JSON has not; "
                     "remove it");
  return makeError(name + ": at byte " + Twine(pos) + ": " + message);
}

void StrictJson::skipSpace() {
  while (pos < text.size() && StringRef(" \t\n\r").contains(text[pos]))
    ++pos;
}

Error StrictJson::expect(char c) {
  skipSpace();
  if (pos == text.size())
    return fail("the text ends where '" + Twine(c) + "' was expected");
  if (text[pos] != c)
    return fail("found " + quoted(text.substr(pos, 1)) + ", expected '" + Twine(c) + "'");
  ++pos;
  return Error::success();
}

Error StrictJson::enter() {
  if (++depth > maxDepth)
    return fail("nested more than " + Twine(maxDepth) + " deep");
  return Error::success();
}

Error StrictJson::object(function_ref<Error(StringRef)> member) {
  if (Error e = expect('{'))
    return e;
  if (Error e = enter())
    return e;
  SmallVector<StringRef, 16> keys;
  skipSpace();
  if (at('}')) {
    ++pos;
  } else {
    while (true) {
      skipSpace();
      Expected<StringRef> key = string();
      if (!key)
        return key.takeError();
      if (Error e = expect(':'))
        return e;
      if (Error e = member(*key))
        return e;
      keys.push_back(*key);
      skipSpace();
      if (at('}')) {
        ++pos;
        break;
      }
      if (Error e = expect(','))
        return e;
    }
  }
  --depth;
  // A sorted set rather than a hash table: keys cannot be chosen to collide.
  llvm::sort(keys);
  auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    return fail("the key " + quoted(*twice) + " is given twice in the object that ends here");
  return Error::success();
}

Error StrictJson::array(function_ref<Error()> element) {
  if (Error e = expect('['))
    return e;
  if (Error e = enter())
    return e;
  skipSpace();
  if (at(']')) {
    ++pos;
  } else {
    while (true) {
      if (Error e = element())
        return e;
      skipSpace();
      if (at(']')) {
        ++pos;
        break;
      }
      if (Error e = expect(','))
        return e;
    }
  }
  --depth;
  return Error::success();
}

Expected<unsigned> StrictJson::hexUnit() {
  unsigned value;
  StringRef digits = text.substr(pos, 4);
  if (digits.size() < 4 || !all_of(digits, isHexDigit) || digits.getAsInteger(16, value))
    return fail("expected four hexadecimal digits after \\u");
  pos += 4;
  return value;
}

/// The part of an escape after its backslash.
Error StrictJson::escape(std::string &out) {
  if (pos == text.size())
    return fail("the text ends inside a string");
  char c = text[pos++];
  static constexpr StringLiteral from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  if (size_t i = from.find(c); i != StringRef::npos) {
    out += to[i];
    return Error::success();
  }
  if (c != 'u') {
    --pos;
    return fail("unknown escape \\" + quoted(StringRef(&c, 1)));
  }
  Expected<unsigned> unit = hexUnit();
  if (!unit)
    return unit.takeError();
  unsigned code = *unit;
  if (code >= 0xd800 && code < 0xe000) {
    if (code >= 0xdc00 || !text.substr(pos).starts_with("\\u"))
      return fail("a lone surrogate in a string");
    pos += 2;
    Expected<unsigned> low = hexUnit();
    if (!low)
      return low.takeError();
    if (*low < 0xdc00 || *low >= 0xe000)
      return fail("a lone surrogate in a string");
    code = 0x10000 + ((code - 0xd800) << 10) + (*low - 0xdc00);
  }
  char buffer[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = buffer;
  ConvertCodePointToUTF8(code, end);
  out.append(buffer, end);
  return Error::success();
}

Expected<StringRef> StrictJson::string() {
  if (Error e = expect('"'))
    return std::move(e);
  size_t start = pos;
  std::string out; // what has been decoded, where there are escapes
  while (true) {
    size_t from = pos;
    while (pos < text.size() && text[pos] != '"' && text[pos] != '\\' &&
           static_cast<unsigned char>(text[pos]) >= 0x20)
      ++pos;
    if (pos == text.size())
      return fail("the text ends inside a string");
    if (at('"') && from == start) {
      ++pos;
      return text.slice(start, pos - 1);
    }
    out.append(text.data() + from, pos - from);
    if (at('"')) {
      ++pos;
      return StringRef(out).copy(decoded);
    }
    if (!at('\\'))
      return fail("a control character in a string");
    ++pos;
    if (Error e = escape(out))
      return std::move(e);
  }
}

/// A number as it is written, under the JSON grammar.
Expected<StringRef> StrictJson::number() {
  skipSpace();
  size_t from = pos;
  auto digits = [&] {
    size_t start = pos;
    while (pos < text.size() && isDigit(text[pos]))
      ++pos;
    return pos > start;
  };
  if (at('-'))
    ++pos;
  if (at('0'))
    ++pos; // a digit after a leading zero ends the number, and then is an error
  else if (!digits())
    return pos == text.size()
               ? fail("the text ends where a value was expected")
               : fail("found " + quoted(text.substr(from, 8)) + ", expected a number");
  if (at('.')) {
    ++pos;
    if (!digits())
      return fail("expected a digit after the decimal point");
  }
  if (at('e') || at('E')) {
    ++pos;
    if (at('+') || at('-'))
      ++pos;
    if (!digits())
      return fail("expected a digit in the exponent");
  }
  return text.slice(from, pos);
}

Expected<int64_t> StrictJson::nonNegativeInteger() {
  Expected<StringRef> digits = number();
  if (!digits)
    return digits.takeError();
  int64_t value;
  if (!all_of(*digits, isDigit) || digits->getAsInteger(10, value))
    return fail("found " + quoted(*digits) + ", expected an integer from 0 to 2^63 - 1");
  return value;
}

Error StrictJson::skip() {
  skipSpace();
  if (at('{'))
    return object([&](StringRef) { return skip(); });
  if (at('['))
    return array([&] { return skip(); });
  if (at('"'))
    return string().takeError();
  for (StringRef word : {"true", "false", "null"})
    if (text.substr(pos).starts_with(word)) {
      pos += word.size();
      return Error::success();
    }
  for (StringRef word : {"Infinity", "-Infinity", "NaN"})
    if (pythonWords && text.substr(pos).starts_with(word)) {
      pythonWords->push_back(text.substr(pos, word.size()));
      pos += word.size();
      return Error::success();
    }
  return number().takeError();
}

Expected<StringRef> StrictJson::raw() {
  skipSpace();
  size_t from = pos;
  if (Error e = skip())
    return std::move(e);
  return text.slice(from, pos);
}

char StrictJson::next() {
  skipSpace();
  return pos < text.size() ? text[pos] : '\0';
}

Error StrictJson::end() {
  skipSpace();
  if (pos != text.size())
    return fail("found " + quoted(text.substr(pos, 8)) + " after the end of the JSON text");
  return Error::success();
}

Error ctxc::checkUtf8(StringRef text, const Twine &name) {
  size_t bad;
  if (!json::isUTF8(text, &bad))
    return makeError(name + ": at byte " + Twine(bad) + ": not valid UTF-8");
  return Error::success();
}

/// `text` as a value, after `reader` has checked it; messages begin with `name`.
static Expected<json::Value> parsed(StrictJson &reader, StringRef text, StringRef name,
                                    std::vector<StringRef> *words) {
  if (Error e = checkUtf8(text, name))
    return std::move(e);
  if (Error e = reader.skip())
    return std::move(e);
  if (Error e = reader.end())
    return std::move(e);
  std::string changed;
  for (StringRef word : words ? ArrayRef(*words) : ArrayRef<StringRef>()) {
    changed += StringRef(text.begin(), word.begin() - text.begin());
    changed += ("{\"__float__\": \"" + word + "\"}").str();
    text = text.drop_front(word.end() - text.begin());
  }
  Expected<json::Value> value =
      changed.empty() ? json::parse(text) : json::parse(changed + text.str());
  if (!value)
    return makeError(name + ": " + toString(value.takeError()));
  return value;
}

Expected<json::Value> ctxc::parseStrictJson(StringRef text, StringRef name) {
  StrictJson reader(text, name);
  return parsed(reader, text, name, nullptr);
}

Expected<json::Value> ctxc::parsePythonJson(StringRef text, StringRef name) {
  std::vector<StringRef> words;
  StrictJson reader(text, name, &words);
  return parsed(reader, text, name, &words);
}
