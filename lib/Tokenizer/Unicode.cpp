#include "Unicode.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>
#include <utf8proc.h>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

/// The length of the character at the front of `bytes`; 0 where it is none, and
/// then `bad` is the length of the maximal part of one (at least 1).
static size_t characterAt(StringRef bytes, size_t &bad) {
  auto byte = [&](size_t i) -> unsigned { return static_cast<unsigned char>(bytes[i]); };
  bad = 1;
  unsigned lead = byte(0), low = 0x80, high = 0xbf;
  size_t length = lead < 0x80   ? 1
                  : lead < 0xc2 ? 0
                  : lead < 0xe0 ? 2
                  : lead < 0xf0 ? 3
                  : lead < 0xf5 ? 4
                                : 0;
  // The second byte rules out overlong forms, surrogates and what is past U+10FFFF.
  if (lead == 0xe0)
    low = 0xa0;
  else if (lead == 0xed)
    high = 0x9f;
  else if (lead == 0xf0)
    low = 0x90;
  else if (lead == 0xf4)
    high = 0x8f;
  for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xbf) {
    if (i >= bytes.size() || byte(i) < low || byte(i) > high) {
      bad = i;
      return 0;
    }
  }
  return length;
}

std::string text::validUtf8(StringRef bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t bad, size = characterAt(bytes, bad);
    if (size)
      out += bytes.take_front(size);
    else
      out += "\xef\xbf\xbd";
    bytes = bytes.drop_front(size ? size : bad);
  }
  return out;
}

/// The code points that stand for bytes; the last 256 of all, which are for private use.
static constexpr char32_t firstMark = 0x10FF00;

std::string text::withMarkedBytes(StringRef bytes) {
  std::string out;
  while (!bytes.empty()) {
    size_t bad, length = characterAt(bytes, bad);
    if (length)
      out += bytes.take_front(length);
    else
      append(out, firstMark + uint8_t(bytes.front()));
    bytes = bytes.drop_front(std::max<size_t>(length, 1));
  }
  return out;
}

std::string text::withoutMarks(StringRef text) {
  std::string bytes;
  forEachCodePoint(text, [&](char32_t c, size_t, size_t) {
    if (c >= firstMark)
      bytes += char(c - firstMark);
    else
      append(bytes, c);
  });
  return bytes;
}

char32_t text::firstCodePoint(StringRef text, size_t &size) {
  auto byte = [&](size_t i) -> char32_t { return static_cast<unsigned char>(text[i]); };
  char32_t lead = byte(0);
  size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  assert(size <= text.size() && "not UTF-8");
  if (size == 1)
    return lead;
  char32_t c = lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i)
    c = c << 6 | (byte(i) & 0x3f);
  return c;
}

void text::append(std::string &out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  out.append(reinterpret_cast<char *>(bytes), utf8proc_encode_char(utf8proc_int32_t(c), bytes));
}

static utf8proc_category_t categoryOf(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

bool text::isWhiteSpace(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool text::isNumeric(char32_t c) {
  utf8proc_category_t category = categoryOf(c);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool text::isPunctuation(char32_t c) {
  if (c < 0x80)
    return isPunct(char(c));
  utf8proc_category_t category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool text::isNonspacingMark(char32_t c) { return categoryOf(c) == UTF8PROC_CATEGORY_MN; }

bool text::isMark(char32_t c) {
  utf8proc_category_t category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool text::isOther(char32_t c) {
  utf8proc_category_t category = categoryOf(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool text::isWord(char32_t c) {
  // Other_Alphabetic beyond the marks: circled and squared letters.
  if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
      (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189))
    return true;
  if (c == 0x200c || c == 0x200d) // Join_Control
    return true;
  utf8proc_category_t category = categoryOf(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME) ||
         category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_PC;
}

bool text::isChinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

std::vector<StringRef> text::graphemes(StringRef text) {
  std::vector<StringRef> all;
  utf8proc_int32_t state = 0;
  char32_t previous = 0;
  size_t begin = 0;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t) {
    if (at > 0 &&
        utf8proc_grapheme_break_stateful(utf8proc_int32_t(previous), utf8proc_int32_t(c), &state)) {
      all.push_back(text.slice(begin, at));
      begin = at;
    }
    previous = c;
  });
  if (begin < text.size())
    all.push_back(text.drop_front(begin));
  return all;
}

Expected<std::string> text::normalize(StringRef text, NormalForm form) {
  if (isASCII(text)) // every normal form of ASCII is itself
    return text.str();
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::C || form == NormalForm::KC)
    options |= UTF8PROC_COMPOSE;
  else
    options |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::KC || form == NormalForm::KD)
    options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t *out = nullptr;
  utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                   utf8proc_ssize_t(text.size()), &out, static_cast<utf8proc_option_t>(options));
  if (size < 0)
    return makeError(Twine("the text cannot be normalized: ") + utf8proc_errmsg(size));
  std::string result(reinterpret_cast<char *>(out), size_t(size));
  std::free(out);
  return result;
}

std::string text::lowercase(StringRef text) {
  std::string out;
  forEachCodePoint(text, [&](char32_t c, size_t, size_t) {
    if (c == 0x130) // the one letter whose lower case is two code points
      out += "i\xcc\x87";
    else
      append(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
  });
  return out;
}

int text::byteOfToken(StringRef token) {
  unsigned value;
  bool shaped = token.size() == 6 && token.starts_with("<0x") && token.ends_with(">") &&
                isHexDigit(token[3]) && isHexDigit(token[4]);
  return shaped && !token.slice(3, 5).getAsInteger(16, value) ? int(value) : -1;
}

std::string text::bytesOfPiece(StringRef piece) {
  if (int byte = byteOfToken(piece); byte >= 0)
    return std::string(1, char(byte));
  SmallVector<StringRef> parts;
  piece.split(parts, "\u2581");
  return join(parts, " ");
}
