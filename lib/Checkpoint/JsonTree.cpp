#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

struct JsonTree::State {
  State(std::string given, StringRef name) : text(std::move(given)), reader(text, name) {
    entries.reserve(text.size() / 16); // about as many as a program has; memory is what is used
  }
  Error add(StringRef key);

  std::string text;
  StrictJson reader; ///< has the memory of decoded strings
  std::vector<JsonView::Entry> entries;
};

Error JsonTree::State::add(StringRef key) {
  size_t at = entries.size();
  char kind = reader.next();
  entries.emplace_back().key = key;
  entries[at].kind = kind;
  uint32_t size = 0;
  if (kind == '{') {
    if (Error error = reader.object([&](StringRef member) { return ++size, add(member); }))
      return error;
  } else if (kind == '[') {
    if (Error error = reader.array([&] { return ++size, add(""); }))
      return error;
  } else {
    Expected<StringRef> text = kind == '"' ? reader.string() : reader.raw();
    if (!text)
      return text.takeError();
    entries[at].text = *text;
  }
  entries[at].size = size;
  entries[at].span = entries.size() - at;
  return Error::success();
}

Expected<JsonTree> JsonTree::parse(std::string text, StringRef name) {
  if (text.size() > UINT32_MAX)
    return makeError(name + ": has " + Twine(text.size()) + " bytes; expected less than 4 GiB");
  if (Error error = checkUtf8(text, name))
    return std::move(error);
  auto state = std::make_shared<State>(std::move(text), name);
  if (Error error = state->add(""))
    return std::move(error);
  if (Error error = state->reader.end())
    return std::move(error);
  JsonTree result;
  result.state = std::move(state);
  return result;
}

JsonView JsonTree::root() const { return JsonView(state->entries.data()); }

JsonView JsonView::operator[](StringRef key) const {
  if (isObject())
    for (JsonView member : *this)
      if (member.key() == key)
        return member;
  return {};
}

std::optional<StringRef> JsonView::text() const {
  return entry && entry->kind == '"' ? std::optional(entry->text) : std::nullopt;
}

std::optional<bool> JsonView::flag() const {
  bool isFlag = entry && (entry->kind == 't' || entry->kind == 'f');
  return isFlag ? std::optional(entry->kind == 't') : std::nullopt;
}

std::optional<double> JsonView::number() const {
  double value;
  bool isNumber = entry && (entry->kind == '-' || isDigit(entry->kind));
  return isNumber && !entry->text.getAsDouble(value) ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> JsonView::integer() const {
  int64_t value;
  std::optional<double> wide = number();
  if (!wide)
    return std::nullopt;
  if (!entry->text.getAsInteger(10, value))
    return value;
  constexpr double end = 9223372036854775808.0; // 2^63
  bool fits = *wide >= -end && *wide < end && std::trunc(*wide) == *wide;
  return fits ? std::optional(int64_t(*wide)) : std::nullopt;
}
