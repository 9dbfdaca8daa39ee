#include "Regex.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

Expected<Regex> Regex::compile(StringRef pattern, const std::string &where) {
  Regex regex;
  if (Error error = RegularExpression::compile(pattern, RegularExpression::Syntax::oniguruma, where)
                        .moveInto(regex.expression))
    return std::move(error);
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
  if (!expression)
    return findLiteral(text, content);
  std::vector<Range> matches;
  size_t at = 0;
  while (at <= text.size()) {
    Expected<std::optional<Range>> match = expression->search(text, at);
    if (!match)
      return match.takeError();
    if (!*match)
      break;
    // An empty match right after a match is none.
    bool empty = (*match)->begin == (*match)->end;
    if (!empty || matches.empty() || matches.back().end != (*match)->end)
      matches.push_back(**match);
    at = (*match)->end;
    if (empty) // on by a whole character
      do
        ++at;
      while (at < text.size() && (text[at] & 0xc0) == 0x80);
  }
  return matches;
}
