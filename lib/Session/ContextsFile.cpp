#include "ctxc/Session/ContextsFile.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

constexpr uint64_t maxBytes = 1 << 24;

class Reader {
public:
  Reader(StringRef path, StringRef option) : path(path), option(option) {}
  Error readLine(StringRef text, size_t number);
  std::vector<ContextEntry> entries;

private:
  Error fail(const ContextEntry &entry, const llvm::Twine &message) const {
    return makeError(option + ": " + entry.where + ": " + message);
  }
  Error readMember(StringRef key, const llvm::json::Value &value, ContextEntry &entry) const;
  std::string fullPath(StringRef given) const;

  StringRef path, option;
  llvm::StringSet<> names;
};

} // namespace

std::string Reader::fullPath(StringRef given) const {
  if (llvm::sys::path::is_absolute(given))
    return given.str();
  llvm::SmallString<256> whole(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(whole, given);
  return std::string(whole);
}

Error Reader::readMember(StringRef key, const llvm::json::Value &value, ContextEntry &entry) const {
  if (key == "context_tokens") {
    const llvm::json::Array *ids = value.getAsArray();
    for (const llvm::json::Value &id : ids ? *ids : llvm::json::Array())
      entry.tokens.push_back(id.getAsInteger().value_or(-1));
    if (entry.tokens.empty() || llvm::is_contained(entry.tokens, -1))
      return fail(entry, "'context_tokens': expected a list of token ids");
    return Error::success();
  }
  auto text = value.getAsString();
  if (!text || text->empty())
    return fail(entry, quoted(key) + ": expected a text");
  std::pair<StringRef, std::string *> paths[] = {
      {"context", &entry.context}, {"text", &entry.text},         {"held_out", &entry.heldOut},
      {"system", &entry.system},   {"messages", &entry.messages}, {"prompts", &entry.prompts}};
  auto *found = llvm::find_if(paths, [&](auto &each) { return each.first == key; });
  if (found != std::end(paths))
    *found->second = fullPath(*text);
  else if (key == "name")
    entry.name = text->str();
  else
    return fail(entry, "found " + quoted(key) +
                           ", expected context, context_tokens, system, messages, text, held_out, "
                           "prompts or name");
  return Error::success();
}

/// Files of a context have its name.
static bool isName(StringRef name) {
  return !name.empty() && !name.starts_with(".") && llvm::all_of(name, [](char c) {
    return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.';
  });
}

Error Reader::readLine(StringRef text, size_t number) {
  ContextEntry entry;
  entry.where = (path + ":" + llvm::Twine(number)).str();
  auto value = parseStrictJson(text, entry.where);
  if (!value)
    return makeError(option + ": " + llvm::toString(value.takeError()));
  if (!value->getAsObject())
    return fail(entry, "expected an object with 'context' and 'text'");
  for (const auto &[key, member] : *value->getAsObject())
    if (Error error = readMember(key, member, entry))
      return error;
  for (StringRef path : {entry.context, entry.system, entry.messages})
    if (entry.name.empty())
      entry.name = llvm::sys::path::stem(path).str();
  if (entry.name.empty())
    entry.name = "context-" + std::to_string(entries.size() + 1);
  if (!isName(entry.name))
    return fail(entry,
                "the name " + quoted(entry.name) +
                    ": expected letters, digits, '-', '_' and '.'; give another with 'name'");
  if (!names.insert(entry.name).second)
    return fail(entry,
                "the name " + quoted(entry.name) + " is there twice; give another with 'name'");
  entries.push_back(std::move(entry));
  return Error::success();
}

Expected<std::vector<ContextEntry>> ctxc::readContextsFile(StringRef path, StringRef option) {
  auto text = readSmallFile(path, maxBytes);
  if (!text)
    return makeError(option + ": " + llvm::toString(text.takeError()));
  Reader reader(path, option);
  llvm::SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  for (auto [i, line] : llvm::enumerate(lines))
    if (!line.trim().empty())
      if (Error error = reader.readLine(line, i + 1))
        return std::move(error);
  if (reader.entries.empty())
    return makeError(option + ": " + path + ": found no context, expected one a line");
  return std::move(reader.entries);
}
