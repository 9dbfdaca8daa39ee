#include "NamePattern.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// Finds what Python and Oniguruma may take for different things.
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
  const std::string place = where + " has " + quoted(given);
  auto compiled = [&](StringRef end, std::optional<RegularExpression> &expression) {
    return RegularExpression::compile(("\\A(?:" + before + given + behind + ")" + end).str(),
                                      RegularExpression::Syntax::python, place)
        .moveInto(expression);
  };
  NamePattern pattern;
  // The expression alone comes first: one with a parenthesis too many may be right within others.
  if (Error error =
          RegularExpression::compile(given, RegularExpression::Syntax::python, place).takeError())
    return std::move(error);
  if (Error error = joinErrors(compiled("\\Z", pattern.whole), compiled("", pattern.beginning)))
    return std::move(error);
  return pattern;
}

Expected<bool> NamePattern::fits(StringRef name) const {
  auto found = whole->search(name);
  if (!found)
    return found.takeError();
  return found->has_value();
}

Expected<std::string> NamePattern::indexIn(StringRef name) const {
  return beginning->searchGroup(name, "idx");
}
