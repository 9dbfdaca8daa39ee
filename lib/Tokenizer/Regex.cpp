#include "Regex.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// Rewrites an Oniguruma expression for PCRE2.
class Translation {
public:
  Translation(StringRef in, const std::string &where) : in(in), where(where) {}

  Expected<std::string> run() {
    while (pos < in.size())
      if (Error error = step())
        return std::move(error);
    return std::move(out);
  }

private:
  StringRef in;
  const std::string &where;
  std::string out;
  size_t pos = 0, classDepth = 0;

  Error refuse(StringRef what) {
    return makeError(where + ": at byte " + Twine(pos) + ": " + what +
                     " is not supported in a splitting expression");
  }

  void copy(size_t count) {
    out += in.substr(pos, count);
    pos += count;
  }

  Error step() {
    StringRef rest = in.substr(pos);
    if (rest[0] == '\\')
      return escape(rest);
    if (classDepth)
      return inClass(rest);
    if (rest[0] == '[') {
      classDepth = 1;
      copy(rest.starts_with("[^") ? 2 : 1);
      if (in.substr(pos).starts_with("]")) // PCRE2 takes it literally, Oniguruma may not
        return refuse("']' at the beginning of a class");
      return Error::success();
    }
    // (?m) lets '.' match a new line in Ruby's syntax, and means something else in PCRE2's.
    if (rest.consume_front("(?")) {
      StringRef options = rest.take_while([](char c) { return isAlpha(c) || c == '-'; });
      bool ends = rest.substr(options.size()).starts_with(":") ||
                  rest.substr(options.size()).starts_with(")");
      if (ends && options.find_first_not_of("i-") != StringRef::npos)
        return refuse("an option but (?i)");
      if (rest.starts_with("~") || rest.starts_with("{"))
        return refuse("this group");
      copy(2);
      return Error::success();
    }
    // Ruby's syntax has no possessive intervals, and "x{2}?" is an optional one.
    if (rest.starts_with("}+") || rest.starts_with("}?"))
      return refuse(quoted(rest.take_front(2)));
    if (rest.starts_with("(*"))
      return refuse("'(*'");
    copy(1);
    return Error::success();
  }

  /// Whether the next character would be taken for the end of a range.
  bool rangeOpen() const { return pos > 0 && in[pos - 1] == '-'; }

  Error inClass(StringRef rest) {
    if (rest.starts_with("&&"))
      return refuse("the intersection of classes");
    if (rest.starts_with("[:")) {
      size_t end = rest.find(":]");
      if (end == StringRef::npos)
        return refuse("'[:' without ':]'");
      copy(end + 2);
      return Error::success();
    }
    // A class within a class is a union: its members are the outer class's too.
    if (rest[0] == '[') {
      if (rest.size() < 2 || rest[1] == '^' || rest[1] == ']' || rest[1] == '-' || rangeOpen())
        return refuse("this class within a class");
      ++classDepth;
      ++pos;
      return Error::success();
    }
    if (rest[0] == ']' && --classDepth) {
      if (rangeOpen() || rest.substr(1).starts_with("-"))
        return refuse("this class within a class");
      ++pos;
      return Error::success();
    }
    copy(1);
    return Error::success();
  }

  Error escape(StringRef rest) {
    if (rest.size() < 2)
      return refuse("a '\\' at the end");
    // White_Space and UTS 18's words: PCRE2's own \s has U+180E besides, its \w no marks.
    static constexpr StringLiteral space =
        "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"
        "\\x{202f}\\x{205f}\\x{3000}";
    static constexpr StringLiteral word = "\\p{L}\\p{M}\\p{N}\\p{Pc}";
    char c = rest[1];
    if (c == 's' || c == 'w' || ((c == 'S' || c == 'W') && !classDepth)) {
      StringRef set = c == 's' || c == 'S' ? StringRef(space) : StringRef(word);
      if (classDepth)
        out += set;
      else
        out += ((c == 'S' || c == 'W') ? "[^" : "[") + set.str() + "]";
      pos += 2;
      return Error::success();
    }
    if (c == 'W')
      return refuse("'\\W' in a class");
    if (c == 'u' && rest.size() >= 6 && all_of(rest.substr(2, 4), isHexDigit)) {
      out += ("\\x{" + rest.substr(2, 4) + "}").str();
      pos += 6;
      return Error::success();
    }
    // A letter that means the same in both.
    if (isAlnum(c) && !StringRef("SdDnrtfvepPxbBAzG123456789").contains(c))
      return refuse(("'\\" + Twine(c) + "'").str());
    bool braces = (c == 'p' || c == 'P' || c == 'x') && rest.substr(2).starts_with("{");
    size_t end = braces ? rest.find('}') : 1;
    if (end == StringRef::npos)
      return refuse("'{' without '}'");
    copy(end + 1);
    return Error::success();
  }
};

} // namespace

Expected<Regex> Regex::compile(StringRef pattern, const std::string &where) {
  if (pattern.size() > 64 << 10)
    return makeError(where + ": an expression of " + Twine(pattern.size()) +
                     " bytes, expected at most 65536");
  Expected<std::string> translated = Translation(pattern, where).run();
  if (!translated)
    return translated.takeError();
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (context)
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int status;
  PCRE2_SIZE offset;
  pcre2_code *code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &status,
                    &offset, context.get());
  if (!code) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(status, message, sizeof(message));
    return makeError(where + ": the splitting expression " + quoted(pattern) +
                     " cannot be read: " + reinterpret_cast<char *>(message));
  }
  Regex regex;
  regex.where = where;
  regex.code = std::shared_ptr<void>(
      code, [](void *code) { pcre2_code_free(static_cast<pcre2_code *>(code)); });
  return regex;
}

Regex Regex::literal(StringRef content) {
  Regex regex;
  regex.content = content.str();
  return regex;
}

static std::vector<Range> findLiteral(StringRef text, StringRef content) {
  std::vector<Range> matches;
  if (content.empty())
    return matches;
  for (size_t at = 0; (at = text.find(content, at)) != StringRef::npos; at += content.size())
    matches.push_back({at, at + content.size()});
  return matches;
}

Expected<std::vector<Range>> Regex::find(StringRef text) const {
  if (!code)
    return findLiteral(text, content);
  auto *program = static_cast<pcre2_code *>(code.get());
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(program, nullptr), pcre2_match_data_free);
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (!data || !context)
    return makeError(where + ": no memory to match a splitting expression");
  pcre2_set_match_limit(context.get(), 2'000'000);
  pcre2_set_heap_limit(context.get(), 256 << 10); // KiB

  std::vector<Range> matches;
  size_t at = 0;
  while (at <= text.size()) {
    int found = pcre2_match(program, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                            PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0) {
      PCRE2_UCHAR message[256];
      pcre2_get_error_message(found, message, sizeof(message));
      return makeError(where + ": the splitting expression gave up on the text at byte " +
                       Twine(at) + ": " + reinterpret_cast<char *>(message));
    }
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data.get());
    Range match{offsets[0], offsets[1]};
    // \K in a lookaround can set the beginning behind the end, or before `at`.
    if (match.begin > match.end || match.begin < at)
      return makeError(where + ": the splitting expression matches outside of its place");
    // An empty match right after a match is none.
    if (match.begin != match.end || matches.empty() || matches.back().end != match.end)
      matches.push_back(match);
    at = match.end;
    if (match.begin == match.end) // on by a whole character
      do
        ++at;
      while (at < text.size() && (text[at] & 0xc0) == 0x80);
  }
  return matches;
}
