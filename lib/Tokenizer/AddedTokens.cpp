#include "AddedTokens.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

void AddedTokens::Finder::add(StringRef content, const Token &token) {
  if (content.empty())
    return;
  tokens[content] = token;
  std::vector<size_t> &sizes = lengths[static_cast<unsigned char>(content[0])];
  auto at = std::lower_bound(sizes.begin(), sizes.end(), content.size(), std::greater<size_t>());
  if (at == sizes.end() || *at != content.size())
    sizes.insert(at, content.size());
}

const AddedTokens::Token *AddedTokens::Finder::find(StringRef text, size_t &length) const {
  for (size_t size : lengths[static_cast<unsigned char>(text[0])]) {
    if (size > text.size())
      continue;
    auto token = tokens.find(text.take_front(size));
    if (token != tokens.end()) {
      length = size;
      return &token->second;
    }
  }
  return nullptr;
}

void AddedTokens::Finder::forgetSpecial() {
  Finder kept;
  for (const auto &[content, token] : tokens)
    if (!token.isSpecial)
      kept.add(content, token);
  *this = std::move(kept);
}

void AddedTokens::forgetSpecial() {
  raw.forgetSpecial();
  normalized.forgetSpecial();
}

/// A new token has the next id, whatever a file says, as in the tokenizers package.
int64_t AddedTokens::idOf(StringRef content, std::optional<int64_t> given,
                          const Vocabulary &vocabulary) const {
  std::optional<int32_t> known = vocabulary.idOf(content);
  if (given && (known || vocabulary.token(*given)))
    return *given; // what the vocabulary says against it is an error
  if (known)
    return *known;
  return largest >= vocabulary.modelSize() ? largest + 1 : vocabulary.modelSize();
}

Error AddedTokens::add(const Field &field, std::optional<int64_t> given,
                       const Normalizer *normalizer, Vocabulary &vocabulary) {
  Expected<std::string> content = field["content"].string();
  if (!content)
    return content.takeError();
  Expected<bool> isSpecial = field["special"].boolean(false);
  if (!isSpecial)
    return isSpecial.takeError();
  Token token;
  bool inNormalized = false;
  for (auto [key, flag] : {std::pair<StringRef, bool *>{"single_word", &token.singleWord},
                           {"lstrip", &token.stripLeft},
                           {"rstrip", &token.stripRight},
                           {"normalized", &inNormalized}}) {
    Expected<bool> read = field[key].boolean(key == "normalized" && !*isSpecial);
    if (!read)
      return read.takeError();
    *flag = *read;
  }
  if (content->empty())
    return Error::success();
  int64_t id = idOf(*content, given, vocabulary);
  if (Error error = vocabulary.addBesideModel(*content, id))
    return field.fail(toString(std::move(error)));
  contents.insert(*content);
  largest = std::max(largest, id);
  token.id = int32_t(id);
  token.isSpecial = *isSpecial;
  if (*isSpecial)
    special.insert(*content);
  std::string found = *content;
  if (inNormalized && normalizer) {
    Expected<std::string> text = normalizer->apply(std::move(found));
    if (!text)
      return text.takeError();
    found = std::move(*text);
    normalizedContents[id] = found;
  }
  (inNormalized ? normalized : raw).add(found, token);
  return Error::success();
}

Expected<AddedTokens> AddedTokens::read(const Field &field, const Normalizer *normalizer,
                                        Vocabulary &vocabulary) {
  AddedTokens added;
  if (field.isNull())
    return added;
  Expected<std::vector<Field>> fields = field.array();
  if (!fields)
    return fields.takeError();
  for (const Field &each : *fields) {
    if (Error error = each.onlyKeys(
            {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}))
      return std::move(error);
    Expected<int64_t> id = each["id"].count();
    if (!id)
      return id.takeError();
    if (Error error = added.add(each, *id, normalizer, vocabulary))
      return std::move(error);
  }
  return added;
}

Error AddedTokens::extend(const Field &field, const Normalizer *normalizer,
                          Vocabulary &vocabulary) {
  Expected<std::vector<Field>> fields = field.array();
  if (!fields)
    return fields.takeError();
  for (const Field &each : *fields) {
    Expected<std::string> content = each["content"].string();
    if (!content)
      return content.takeError();
    if (contents.contains(*content))
      continue;
    if (Error error = add(each, std::nullopt, normalizer, vocabulary))
      return error;
  }
  return Error::success();
}

/// Whether the character of `text` that ends at `end`, or begins at `begin`, is a word character.
static bool wordEndsAt(StringRef text, size_t end) {
  size_t begin = end, size;
  while (begin > 0 && (text[--begin] & 0xc0) == 0x80)
    ;
  return end > 0 && isWord(firstCodePoint(text.drop_front(begin), size));
}
static bool wordBeginsAt(StringRef text, size_t begin) {
  size_t size;
  return begin < text.size() && isWord(firstCodePoint(text.drop_front(begin), size));
}

/// The beginning and the end of the white space around a position.
static size_t spaceBefore(StringRef text, size_t at, bool (*isSpace)(char32_t)) {
  size_t begin = 0;
  forEachCodePoint(text.take_front(at), [&](char32_t c, size_t from, size_t size) {
    if (!isSpace(c))
      begin = from + size;
  });
  return begin;
}
static size_t spaceAfter(StringRef text, size_t at, bool (*isSpace)(char32_t)) {
  size_t size;
  while (at < text.size() && isSpace(firstCodePoint(text.drop_front(at), size)))
    at += size;
  return at;
}

std::vector<Part> AddedTokens::split(StringRef text, const Finder &finder,
                                     bool (*isSpace)(char32_t)) {
  std::vector<Part> parts;
  size_t done = 0, at = 0, length;
  while (at < text.size()) {
    const Token *token = finder.find(text.drop_front(at), length);
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    if (token->singleWord && (wordEndsAt(text, begin) || wordBeginsAt(text, end)))
      continue;
    if (token->stripLeft)
      begin = done + spaceBefore(text.drop_front(done), std::max(begin, done) - done, isSpace);
    if (token->stripRight)
      end = spaceAfter(text, end, isSpace);
    if (done < begin)
      parts.push_back({{done, begin}, std::nullopt});
    parts.push_back({{begin, end}, token->id});
    done = end;
  }
  if (done < text.size())
    parts.push_back({{done, text.size()}, std::nullopt});
  return parts;
}
