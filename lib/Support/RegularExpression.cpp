#include "ctxc/Support/RegularExpression.h"
#include "ctxc/Support/Error.h"
#include <oniguruma.h>

using namespace llvm;
using namespace ctxc;

static const UChar *bytesOf(StringRef text) { return reinterpret_cast<const UChar *>(text.data()); }

static std::string messageOf(int code, OnigErrorInfo *info = nullptr) {
  UChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
  int size =
      info ? onig_error_code_to_str(message, code, info) : onig_error_code_to_str(message, code);
  return std::string(reinterpret_cast<char *>(message), size);
}

struct RegularExpression::Region {
  OnigRegion *groups = onig_region_new();
  Region() = default;
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;
  ~Region() { onig_region_free(groups, 1); }
};

Expected<RegularExpression> RegularExpression::compile(StringRef pattern, Syntax syntax,
                                                       const std::string &where) {
  if (pattern.size() > 64 << 10)
    return makeError(where + ": an expression of " + Twine(pattern.size()) +
                     " bytes, expected at most 65536");
  static const int ready = [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    onig_set_warn_func(onig_null_warn);
    return onig_initialize(&encoding, 1);
  }();
  if (ready != ONIG_NORMAL)
    return makeError("Oniguruma cannot be started: " + messageOf(ready));
  regex_t *program = nullptr;
  OnigErrorInfo info;
  int status =
      onig_new(&program, bytesOf(pattern), bytesOf(pattern) + pattern.size(), ONIG_OPTION_NONE,
               ONIG_ENCODING_UTF8,
               syntax == Syntax::python ? ONIG_SYNTAX_PYTHON : ONIG_SYNTAX_ONIGURUMA, &info);
  if (status != ONIG_NORMAL)
    return makeError(where + ": the expression '" + pattern +
                     "' cannot be read: " + messageOf(status, &info));
  RegularExpression expression;
  expression.where = where;
  expression.program.reset(program,
                           [](void *program) { onig_free(static_cast<regex_t *>(program)); });
  return expression;
}

Expected<bool> RegularExpression::search(StringRef text, size_t from, Region &region) const {
  std::unique_ptr<OnigMatchParam, decltype(&onig_free_match_param)> limits(onig_new_match_param(),
                                                                           onig_free_match_param);
  if (!limits || !region.groups)
    return makeError(where + ": no memory to search with an expression");
  onig_set_match_stack_limit_size_of_match_param(limits.get(), 4 << 20); // entries
  onig_set_retry_limit_in_match_of_match_param(limits.get(), 2'000'000);
  onig_set_retry_limit_in_search_of_match_param(limits.get(), 2'000'000 + 64 * text.size());
  const UChar *begin = bytesOf(text), *end = begin + text.size();
  int found =
      onig_search_with_param(static_cast<regex_t *>(program.get()), begin, end, begin + from, end,
                             region.groups, ONIG_OPTION_NONE, limits.get());
  if (found < 0 && found != ONIG_MISMATCH)
    return makeError(where + ": the expression gave up on the text at byte " + Twine(from) + ": " +
                     messageOf(found));
  return found >= 0;
}

Expected<std::optional<RegularExpression::Range>> RegularExpression::search(StringRef text,
                                                                            size_t from) const {
  Region region;
  Expected<bool> found = search(text, from, region);
  if (!found)
    return found.takeError();
  if (!*found)
    return std::nullopt;
  Range range{size_t(region.groups->beg[0]), size_t(region.groups->end[0])};
  if (range.begin > range.end || range.begin < from)
    return makeError(where + ": the expression matches outside of its place");
  return range;
}

Expected<std::string> RegularExpression::searchGroup(StringRef text, StringRef name) const {
  Region region;
  Expected<bool> found = search(text, 0, region);
  if (!found)
    return found.takeError();
  if (!*found)
    return "";
  int group = onig_name_to_backref_number(static_cast<regex_t *>(program.get()), bytesOf(name),
                                          bytesOf(name) + name.size(), region.groups);
  if (group < 0 || region.groups->beg[group] < 0)
    return "";
  return text.slice(region.groups->beg[group], region.groups->end[group]).str();
}
