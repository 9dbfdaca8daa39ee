#include "Pattern.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

Expected<Regex> text::readPattern(const Field &field) {
  if (Error error = field.onlyKeys({"String", "Regex"}))
    return std::move(error);
  bool regex = !field["Regex"].isNull();
  if (regex == !field["String"].isNull())
    return field.fail("expected one of 'String' and 'Regex'");
  Expected<std::string> pattern = field[regex ? "Regex" : "String"].string();
  if (!pattern)
    return pattern.takeError();
  return regex ? Regex::compile(*pattern, field["Regex"].place()) : Regex::literal(*pattern);
}

Expected<std::string> text::replaceAll(StringRef text, const Regex &pattern, StringRef content,
                                       const std::string &where) {
  Expected<std::vector<Range>> matches = pattern.find(text);
  if (!matches)
    return matches.takeError();
  // A chain of replacements could double the text each time.
  constexpr size_t limit = size_t(1) << 26;
  if (text.size() + matches->size() * content.size() > limit)
    return makeError(where + ": the text would grow past 2^26 bytes");
  std::string out;
  size_t at = 0;
  for (const Range &match : *matches) {
    out += text.slice(at, match.begin);
    out += content;
    at = match.end;
  }
  out += text.drop_front(at);
  return out;
}

Expected<Replacement> Replacement::read(const Field &field) {
  if (Error error = field.onlyKeys({"type", "pattern", "content"}))
    return std::move(error);
  Expected<Regex> pattern = readPattern(field["pattern"]);
  if (!pattern)
    return pattern.takeError();
  Expected<std::string> content = field["content"].string();
  if (!content)
    return content.takeError();
  return Replacement{std::move(*pattern), std::move(*content), field.place()};
}
