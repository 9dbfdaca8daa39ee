#include "Charsmap.h"
#include "Unicode.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

Expected<Charsmap> Charsmap::read(StringRef bytes, const std::string &where) {
  size_t size = bytes.size() < 4 ? 0 : support::endian::read32le(bytes.data());
  if (size == 0 || size % 4 || size > bytes.size() - 4)
    return makeError(where + ": is not a precompiled normalization of " + Twine(bytes.size()) +
                     " bytes");
  Charsmap map;
  for (size_t at = 0; at < size; at += 4)
    map.units.push_back(support::endian::read32le(bytes.data() + 4 + at));
  map.replacements = bytes.drop_front(4 + size).str();
  if (!map.replacements.empty() && map.replacements.back() != 0)
    return makeError(where + ": its last replacement has no end");
  map.replacements = validUtf8(map.replacements);
  if (map.replacements.size() != bytes.size() - 4 - size)
    return makeError(where + ": a replacement is not UTF-8");
  return map;
}

// A unit of Darts' double array: bits 0-7 and 31 the label, 8 whether the children have a value, 9
// a scale of the offset in bits 10-30. A value's unit has it in bits 0-30.
template <typename F> void Charsmap::parts(StringRef text, F see) const {
  auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  size_t node = offset(units[0]);
  for (size_t at = 0; at < text.size(); ++at) {
    uint8_t c = text[at];
    node ^= c;
    if (c == 0 || node >= units.size() || (units[node] & (1u << 31 | 0xff)) != c)
      return;
    uint32_t unit = units[node];
    node ^= offset(unit);
    if (!(unit & (1u << 8)))
      continue;
    if (node >= units.size() || !see(at + 1, units[node] & 0x7fffffff))
      return;
  }
}

StringRef Charsmap::replacement(uint32_t offset) const {
  if (offset >= replacements.size())
    return "";
  return StringRef(replacements.data() + offset); // up to its NUL; read() saw that the last has one
}

std::optional<StringRef> Charsmap::shortest(StringRef text) const {
  std::optional<StringRef> found;
  parts(text, [&](size_t, uint32_t offset) {
    found = replacement(offset);
    return false;
  });
  return found;
}

std::string Charsmap::replaceLongest(StringRef text) const {
  std::string out;
  while (!text.empty()) {
    size_t length = 0;
    uint32_t offset = 0;
    parts(text, [&](size_t size, uint32_t at) {
      length = size;
      offset = at;
      return true;
    });
    if (length) {
      out += replacement(offset);
    } else {
      firstCodePoint(text, length);
      out += text.take_front(length);
    }
    text = text.drop_front(length);
  }
  return validUtf8(out);
}

std::string Charsmap::replaceGraphemes(StringRef text) const {
  std::string out;
  for (StringRef grapheme : graphemes(text)) {
    if (grapheme.size() < 6)
      if (std::optional<StringRef> whole = shortest(grapheme)) {
        out += *whole;
        continue;
      }
    forEachCodePoint(grapheme, [&](char32_t, size_t at, size_t size) {
      StringRef character = grapheme.substr(at, size);
      out += shortest(character).value_or(character);
    });
  }
  return validUtf8(out);
}
