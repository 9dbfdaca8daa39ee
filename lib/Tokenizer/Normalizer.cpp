#include "Normalizer.h"
#include "Charsmap.h"
#include "Pattern.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Base64.h"
#include <array>
#include <functional>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// A normalizer that is a function of the text, as most are.
class Step final : public Normalizer {
public:
  using Function = std::function<Expected<std::string>(std::string)>;
  explicit Step(Function function) : function(std::move(function)) {}
  Expected<std::string> apply(std::string text) const override { return function(std::move(text)); }

private:
  Function function;
};

struct Sequence final : Normalizer {
  std::vector<std::unique_ptr<Normalizer>> steps;
  Expected<std::string> apply(std::string text) const override {
    for (const std::unique_ptr<Normalizer> &step : steps) {
      Expected<std::string> next = step->apply(std::move(text));
      if (!next)
        return next;
      text = std::move(*next);
    }
    return text;
  }
};

/// The 256 characters of bytes: printable Latin-1 stands for itself, the others
/// follow from U+0100 on.
struct ByteCharacters {
  std::array<char32_t, 256> characters;
  std::array<int, 0x200> bytes;
  ByteCharacters() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      characters[b] = itself ? char32_t(b) : next++;
      bytes[characters[b]] = b;
    }
  }
};

} // namespace

static const ByteCharacters &byteCharacters() {
  static const ByteCharacters table;
  return table;
}

std::string text::byteLevel(StringRef text) {
  std::string out;
  for (unsigned char b : text)
    append(out, byteCharacters().characters[b]);
  return out;
}

int text::byteOfCharacter(char32_t c) {
  return c < byteCharacters().bytes.size() ? byteCharacters().bytes[c] : -1;
}

template <typename Keep> static std::string filter(StringRef text, Keep keep) {
  std::string out;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    if (keep(c))
      out += text.substr(at, size);
  });
  return out;
}

static std::string strip(StringRef text, bool left, bool right) {
  size_t begin = text.size(), end = 0;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    if (isWhiteSpace(c))
      return;
    begin = std::min(begin, at);
    end = at + size;
  });
  if (end == 0) // all of it is space
    return left || right ? "" : text.str();
  return text.slice(left ? begin : 0, right ? end : text.size()).str();
}

/// BERT's clean_text: without controls, and every space a ' '.
static std::string clean(StringRef text) {
  std::string out;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    bool lineSpace = c == '\t' || c == '\n' || c == '\r';
    if (lineSpace || (isWhiteSpace(c) && !isOther(c)))
      out += ' ';
    else if (c != 0 && c != 0xfffd && !isOther(c))
      out += text.substr(at, size);
  });
  return out;
}

/// sentencepiece's rules for machine translation.
static std::string cleanForTranslation(StringRef text) {
  std::string out;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    bool isSpace = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                   (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                   c == 0xfeff || c == 0xfffd;
    bool isDropped = (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) ||
                     c == 0x7f || c == 0x8f || c == 0x9f;
    if (isSpace)
      out += ' ';
    else if (!isDropped)
      out += text.substr(at, size);
  });
  return out;
}

static std::string spaceChinese(StringRef text) {
  std::string out;
  forEachCodePoint(text, [&](char32_t c, size_t at, size_t size) {
    StringRef character = text.substr(at, size);
    out += isChinese(c) ? " " + character.str() + " " : character.str();
  });
  return out;
}

static Expected<std::unique_ptr<Normalizer>> step(Step::Function function) {
  return std::make_unique<Step>(std::move(function));
}

static Expected<std::unique_ptr<Normalizer>> readStrip(const Field &field) {
  if (Error error = field.onlyKeys({"type", "strip_left", "strip_right"}))
    return std::move(error);
  Expected<bool> left = field["strip_left"].boolean(), right = field["strip_right"].boolean();
  if (!left || !right)
    return joinErrors(left.takeError(), right.takeError());
  return step([l = *left, r = *right](std::string text) { return strip(text, l, r); });
}

static Expected<std::unique_ptr<Normalizer>> readPrepend(const Field &field) {
  if (Error error = field.onlyKeys({"type", "prepend"}))
    return std::move(error);
  Expected<std::string> prefix = field["prepend"].string();
  if (!prefix)
    return prefix.takeError();
  return step([p = *prefix](std::string text) { return text.empty() ? text : p + text; });
}

static Expected<std::unique_ptr<Normalizer>> readReplace(const Field &field) {
  Expected<Replacement> replacement = Replacement::read(field);
  if (!replacement)
    return replacement.takeError();
  return step([r = *replacement](std::string text) { return r.in(text); });
}

static Expected<std::unique_ptr<Normalizer>> readBert(const Field &field) {
  if (Error error = field.onlyKeys(
          {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}))
    return std::move(error);
  Expected<bool> cleaned = field["clean_text"].boolean(true);
  Expected<bool> chinese = field["handle_chinese_chars"].boolean(true);
  Expected<bool> lower = field["lowercase"].boolean(true);
  if (!cleaned || !chinese || !lower)
    return joinErrors(joinErrors(cleaned.takeError(), chinese.takeError()), lower.takeError());
  Expected<bool> accents = field["strip_accents"].boolean(*lower);
  if (!accents)
    return accents.takeError();
  return step([cleaned = *cleaned, chinese = *chinese, accents = *accents,
               lower = *lower](std::string text) -> Expected<std::string> {
    if (cleaned)
      text = clean(text);
    if (chinese)
      text = spaceChinese(text);
    if (accents) {
      Expected<std::string> parts = normalize(text, NormalForm::D);
      if (!parts)
        return parts;
      text = filter(*parts, [](char32_t c) { return !isNonspacingMark(c); });
    }
    return lower ? lowercase(text) : text;
  });
}

/// "longest_prefix" is ours: as sentencepiece applies the map, not as the tokenizers package does.
static Expected<std::unique_ptr<Normalizer>> readPrecompiled(const Field &field) {
  if (Error error = field.onlyKeys({"type", "precompiled_charsmap", "longest_prefix"}))
    return std::move(error);
  Expected<bool> longest = field["longest_prefix"].boolean(false);
  Expected<std::string> text = field["precompiled_charsmap"].string("");
  if (!longest || !text)
    return joinErrors(longest.takeError(), text.takeError());
  if (text->empty())
    return nullptr;
  std::vector<char> bytes;
  if (Error error = decodeBase64(*text, bytes))
    return field["precompiled_charsmap"].fail(toString(std::move(error)));
  Expected<Charsmap> map =
      Charsmap::read(StringRef(bytes.data(), bytes.size()), field["precompiled_charsmap"].place());
  if (!map)
    return map.takeError();
  return step(
      [map = std::make_shared<Charsmap>(std::move(*map)), longest = *longest](std::string text) {
        return longest ? map->replaceLongest(text) : map->replaceGraphemes(text);
      });
}

static Expected<std::unique_ptr<Normalizer>> readSequence(const Field &field) {
  auto steps = readSteps<Normalizer>(field, "normalizers", readNormalizer);
  if (!steps)
    return steps.takeError();
  auto sequence = std::make_unique<Sequence>();
  sequence->steps = std::move(*steps);
  return sequence;
}

Expected<std::unique_ptr<Normalizer>> text::readNormalizer(const Field &field) {
  if (field.isNull())
    return nullptr;
  Expected<std::string> type = field.type();
  if (!type)
    return type.takeError();
  static constexpr StringLiteral withoutKeys[] = {"NFC", "NFD",       "NFKC",         "NFKD",
                                                  "Nmt", "Lowercase", "StripAccents", "ByteLevel"};
  if (is_contained(withoutKeys, StringRef(*type)))
    if (Error error = field.onlyKeys({"type"}))
      return std::move(error);
  static const std::pair<StringRef, NormalForm> forms[] = {{"NFC", NormalForm::C},
                                                           {"NFD", NormalForm::D},
                                                           {"NFKC", NormalForm::KC},
                                                           {"NFKD", NormalForm::KD}};
  for (auto [name, form] : forms)
    if (*type == name)
      return step([form = form](std::string text) { return normalize(text, form); });
  if (*type == "Sequence")
    return readSequence(field);
  if (*type == "Replace")
    return readReplace(field);
  if (*type == "Prepend")
    return readPrepend(field);
  if (*type == "Strip")
    return readStrip(field);
  if (*type == "BertNormalizer")
    return readBert(field);
  if (*type == "Precompiled")
    return readPrecompiled(field);
  if (*type == "Nmt")
    return step([](std::string text) { return cleanForTranslation(text); });
  if (*type == "Lowercase")
    return step([](std::string text) { return lowercase(text); });
  if (*type == "StripAccents")
    return step(
        [](std::string text) { return filter(text, [](char32_t c) { return !isMark(c); }); });
  if (*type == "ByteLevel")
    return step([](std::string text) { return byteLevel(text); });
  return field.fail("the normalizer " + quoted(*type) +
                    " is not supported; give token ids instead of text");
}
