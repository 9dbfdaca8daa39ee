#include "NamePattern.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace llvm;
using namespace ctxc;

namespace {

/// Finds what Python and PCRE2 take for different things.
class Syntax {
public:
  explicit Syntax(StringRef pattern) : rest(pattern), size(pattern.size()) {}

  /// What stands in the way at the byte at(); empty where the two agree.
  StringRef problem() {
    StringRef found;
    while (found.empty() && !rest.empty())
      found = step();
    return found;
  }
  size_t at() const { return size - rest.size(); }

private:
  StringRef step() {
    if (rest[0] == '\\')
      return escape();
    if (inClass)
      return ofClass();
    if (rest[0] == '[') {
      rest = rest.drop_front(rest.starts_with("[^") ? 2 : 1);
      rest.consume_front("]"); // which is literal here
      inClass = true;
      return afterQuantifier = "";
    }
    if (rest[0] == '(')
      return group();
    if (StringRef("*+?{").contains(rest[0]))
      return quantifier();
    rest = rest.drop_front();
    return afterQuantifier = "";
  }

  StringRef escape() {
    StringRef common = inClass ? "dDwWsSntrf" : "dDwWsSntrfbBAZ";
    if (rest.size() < 2 || (isAlnum(rest[1]) && !common.contains(rest[1])))
      return "an escape other than \\d, \\w, \\s, \\b, \\A, \\Z, and of signs,";
    rest = rest.drop_front(2);
    return afterQuantifier = "";
  }

  StringRef ofClass() {
    if (rest[0] == '[')
      return "'[' in a class";
    inClass = rest[0] != ']';
    rest = rest.drop_front();
    return "";
  }

  StringRef group() {
    afterQuantifier = "";
    if (rest.starts_with("(*"))
      return "'(*'";
    // Flags for the whole expression stand at its beginning.
    if (at() == 0 && rest.consume_front("(?i)"))
      return "";
    for (StringRef begin : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?P<"})
      if (rest.consume_front(begin))
        return "";
    if (rest.starts_with("(?"))
      return "a group other than (?:…), (?i:…), (?P<name>…) and lookarounds";
    rest = rest.drop_front();
    return "";
  }

  StringRef quantifier() {
    StringRef text = rest.take_front();
    if (text == "{") {
      StringRef behind = rest.drop_front();
      StringRef least = behind.take_while(isDigit);
      StringRef most = behind.drop_front(least.size());
      if (most.consume_front(","))
        most = most.drop_front(most.take_while(isDigit).size());
      if (!most.starts_with("}") || rest.starts_with("{}")) { // literal
        rest = rest.drop_front();
        return afterQuantifier = "";
      }
      if (least.empty())
        return "'{,'";
      text = StringRef(rest.data(), most.data() - rest.data() + 1);
    }
    if (!afterQuantifier.empty())
      return "a quantifier of a quantifier";
    rest = rest.drop_front(text.size());
    if (rest.starts_with("?") || rest.starts_with("+")) // lazy, possessive
      rest = rest.drop_front();
    afterQuantifier = text;
    return "";
  }

  StringRef rest, afterQuantifier;
  size_t size;
  bool inClass = false;
};

std::string messageOf(int code) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(code, message, sizeof(message));
  return reinterpret_cast<char *>(message);
}

PCRE2_SPTR units(StringRef text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

} // namespace

Expected<NamePattern> NamePattern::compile(StringRef given, const std::string &where,
                                           StringRef before, StringRef behind) {
  Syntax syntax(given);
  if (StringRef problem = syntax.problem(); !problem.empty())
    return makeError(where + " has " + quoted(given) + "; at byte " + Twine(syntax.at()) + ": " +
                     problem + " is not supported in a pattern of modules");
  if (!before.empty() && given.starts_with("(?i)"))
    return makeError(where + " has " + quoted(given) +
                     "; flags stand at the beginning of a whole "
                     "pattern alone, and this one is a part of one; expected (?i:…)");
  std::string whole = (before + given + behind).str();
  NamePattern pattern;
  pattern.where = where + " has " + quoted(given);
  int error;
  PCRE2_SIZE offset;
  pcre2_code *code =
      pcre2_compile(units(whole), whole.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  if (!code)
    return makeError(pattern.where + ", which is no regular expression: " + messageOf(error));
  pattern.code.reset(code, [](void *code) { pcre2_code_free(static_cast<pcre2_code *>(code)); });
  return pattern;
}

Expected<bool> NamePattern::match(StringRef name, unsigned options, std::string *index) const {
  auto *program = static_cast<pcre2_code *>(code.get());
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(program, nullptr), pcre2_match_data_free);
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (!data || !context)
    return makeError(where + ": no memory to match it");
  pcre2_set_match_limit(context.get(), 1'000'000);
  int found = pcre2_match(program, units(name), name.size(), 0, options | PCRE2_ANCHORED,
                          data.get(), context.get());
  if (found == PCRE2_ERROR_NOMATCH)
    return false;
  if (found < 0)
    return makeError(where + ", which gave up on " + quoted(name) + ": " + messageOf(found));
  if (index) {
    int number = pcre2_substring_number_from_name(program, units("idx"));
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data.get());
    if (number > 0 && number < found && offsets[2 * number] != PCRE2_UNSET)
      *index = name.slice(offsets[2 * number], offsets[2 * number + 1]).str();
  }
  return true;
}

Expected<bool> NamePattern::fits(StringRef name) const {
  return match(name, PCRE2_ENDANCHORED, nullptr);
}

Expected<std::string> NamePattern::indexIn(StringRef name) const {
  std::string index;
  if (Error error = match(name, 0, &index).takeError())
    return std::move(error);
  return index;
}
