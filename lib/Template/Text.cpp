#include "Text.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>
#include <utf8proc.h>

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;

char32_t jinja::firstCharacter(StringRef text, size_t &size) {
  utf8proc_int32_t c = -1;
  utf8proc_ssize_t length = utf8proc_iterate(text.bytes_begin(), utf8proc_ssize_t(text.size()), &c);
  size = length > 0 ? size_t(length) : 1;
  return length > 0 ? char32_t(c) : 0xfffd;
}

void jinja::appendCharacter(std::string &out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  out.append(reinterpret_cast<char *>(bytes), utf8proc_encode_char(utf8proc_int32_t(c), bytes));
}

bool jinja::isSpace(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool jinja::isPrintable(char32_t c) {
  switch (utf8proc_category(utf8proc_int32_t(c))) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return c == ' ';
  default:
    return true;
  }
}

bool jinja::isCased(char32_t c, bool &upper) {
  utf8proc_category_t category = utf8proc_category(utf8proc_int32_t(c));
  upper = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
  return upper || category == UTF8PROC_CATEGORY_LL;
}

std::vector<StringRef> jinja::characters(StringRef text) {
  std::vector<StringRef> all;
  for (size_t size; !text.empty(); text = text.drop_front(size)) {
    firstCharacter(text, size);
    all.push_back(text.take_front(size));
  }
  return all;
}

size_t jinja::countCharacters(StringRef text) {
  return llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

/// Where the last character of `text` begins.
static size_t lastCharacter(StringRef text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xc0) == 0x80)
    --begin;
  return begin;
}

template <typename Holds>
static StringRef stripWhere(StringRef text, bool left, bool right, Holds holds) {
  size_t size;
  while (left && !text.empty() && holds(firstCharacter(text, size)))
    text = text.drop_front(size);
  while (right && !text.empty() && holds(firstCharacter(text.substr(lastCharacter(text)), size)))
    text = text.take_front(lastCharacter(text));
  return text;
}

StringRef jinja::strip(StringRef text, bool left, bool right) {
  return stripWhere(text, left, right, isSpace);
}

StringRef jinja::strip(StringRef text, StringRef set, bool left, bool right) {
  std::vector<StringRef> chosen = characters(set);
  return stripWhere(text, left, right, [&](char32_t c) {
    std::string spelled;
    appendCharacter(spelled, c);
    return llvm::is_contained(chosen, StringRef(spelled));
  });
}

static void appendUpper(std::string &out, char32_t c) {
  if (c == 0xdf)
    out += "SS";
  else
    appendCharacter(out, char32_t(utf8proc_toupper(utf8proc_int32_t(c))));
}

static void appendLower(std::string &out, char32_t c) {
  if (c == 0x130)
    out += "i\xcc\x87";
  else
    appendCharacter(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
}

template <typename Append> static std::string mapEach(StringRef text, Append append) {
  std::string out;
  for (size_t size; !text.empty(); text = text.drop_front(size))
    append(out, firstCharacter(text, size));
  return out;
}

std::string jinja::toUpper(StringRef text) { return mapEach(text, appendUpper); }
std::string jinja::toLower(StringRef text) { return mapEach(text, appendLower); }

std::string jinja::capitalize(StringRef text) {
  bool first = true;
  return mapEach(text, [&](std::string &out, char32_t c) {
    std::exchange(first, false) ? appendUpper(out, c) : appendLower(out, c);
  });
}

std::string jinja::titleByLetters(StringRef text) {
  bool inside = false, upper;
  return mapEach(text, [&](std::string &out, char32_t c) {
    inside ? appendLower(out, c) : appendUpper(out, c);
    inside = isCased(c, upper);
  });
}

std::string jinja::titleByWords(StringRef text) {
  bool inside = false;
  return mapEach(text, [&](std::string &out, char32_t c) {
    inside ? appendLower(out, c) : appendUpper(out, c);
    inside = !isSpace(c) && !(c < 0x80 && StringRef("-({[<").contains(char(c)));
  });
}

std::string jinja::replaceAll(StringRef text, StringRef from, StringRef to, int64_t most) {
  std::string out;
  if (from.empty()) {
    for (StringRef c : characters(text)) {
      if (most-- != 0)
        out += to;
      else
        most = 0;
      out += c;
    }
    return most != 0 ? out + to.str() : out;
  }
  for (size_t at; most != 0 && (at = text.find(from)) != StringRef::npos; --most) {
    out += text.take_front(at);
    out += to;
    text = text.drop_front(at + from.size());
  }
  return out + text.str();
}

std::vector<StringRef> jinja::splitAt(StringRef text, StringRef separator, int64_t most,
                                      bool fromRight) {
  std::vector<StringRef> parts;
  for (; most != 0; --most) {
    size_t at = fromRight ? text.rfind(separator) : text.find(separator);
    if (at == StringRef::npos)
      break;
    StringRef before = text.take_front(at), behind = text.drop_front(at + separator.size());
    parts.push_back(fromRight ? behind : before);
    text = fromRight ? before : behind;
  }
  parts.push_back(text);
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<StringRef> jinja::splitWords(StringRef text, int64_t most, bool fromRight) {
  std::vector<StringRef> words;
  while (!(text = strip(text, !fromRight, fromRight)).empty()) {
    if (most-- == 0) {
      words.push_back(text);
      break;
    }
    size_t end = fromRight ? text.size() : 0, size;
    if (fromRight)
      while (end > 0 &&
             !isSpace(firstCharacter(text.substr(lastCharacter(text.take_front(end))), size)))
        end = lastCharacter(text.take_front(end));
    else
      while (end < text.size() && !isSpace(firstCharacter(text.drop_front(end), size)))
        end += size;
    words.push_back(fromRight ? text.drop_front(end) : text.take_front(end));
    text = fromRight ? text.take_front(end) : text.drop_front(end);
  }
  if (fromRight)
    std::reverse(words.begin(), words.end());
  return words;
}

std::vector<StringRef> jinja::splitLines(StringRef text, bool keepEnds) {
  std::vector<StringRef> lines;
  size_t begin = 0, size;
  for (size_t at = 0; at < text.size(); at += size) {
    char32_t c = firstCharacter(text.drop_front(at), size);
    bool ends = (c >= 0xa && c <= 0xd) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
                c == 0x2029;
    if (!ends)
      continue;
    size_t end = at;
    if (c == '\r' && text.substr(at + 1).starts_with("\n"))
      size = 2;
    lines.push_back(text.slice(begin, keepEnds ? end + size : end));
    begin = at + size;
  }
  if (begin < text.size())
    lines.push_back(text.drop_front(begin));
  return lines;
}

std::string jinja::quotedText(StringRef text) {
  char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string out(1, quote);
  for (size_t size; !text.empty(); text = text.drop_front(size)) {
    char32_t c = firstCharacter(text, size);
    if (c == char32_t(quote) || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (isPrintable(c)) {
      out += text.take_front(size);
    } else {
      unsigned width = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
      out += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
      out += llvm::utohexstr(c, /*LowerCase=*/true, width);
    }
  }
  return out + quote;
}

std::string jinja::realText(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  char buffer[32];
  std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  StringRef spelled(buffer, end.ptr - buffer);
  std::string sign = spelled.consume_front("-") ? "-" : "";
  auto [mantissa, power] = spelled.split('e');
  int exponent = 0;
  (void)power.ltrim('+').getAsInteger(10, exponent);
  std::string digits = mantissa.take_front(1).str() + mantissa.drop_front(1).ltrim('.').str();
  int count = int(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string shown = std::to_string(std::abs(exponent));
    return sign + digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") +
           (exponent < 0 ? "e-" : "e+") + (shown.size() < 2 ? "0" : "") + shown;
  }
  if (exponent < 0)
    return sign + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1)
    return sign + digits + std::string(exponent + 1 - count, '0') + ".0";
  return sign + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}
