// Where words and sentences of a tokenized text begin.
#include "ctxc/Tokenizer/TextUnits.h"
#include "Unicode.h"
#include "llvm/ADT/Sequence.h"
#include <string_view>

using namespace ctxc;

namespace {

constexpr std::u32string_view closing = U"\"')]}»”’」』）";

/// What stands at the end of a text.
struct Ending {
  bool stop = false;     ///< of a sentence, before any white space
  bool wideStop = false; ///< one that no white space follows
  bool space = false, newLine = false;

  void add(llvm::StringRef text) {
    text::forEachCodePoint(text, [&](char32_t c, size_t, size_t) { add(c); });
  }

private:
  void add(char32_t c) {
    if (text::isWhiteSpace(c)) {
      space = true;
      newLine |= c == U'\n';
      return;
    }
    constexpr std::u32string_view stops = U".!?…", wideStops = U"。！？";
    const bool isBehindStop = !space && closing.find(c) != closing.npos;
    space = newLine = false;
    if (isBehindStop)
      return;
    wideStop = wideStops.find(c) != wideStops.npos;
    stop = wideStop || stops.find(c) != stops.npos;
  }
};

/// What token `at` adds to the text; nothing where it only completes a character.
llvm::Expected<std::string> textOfToken(const Tokenizer &tokenizer, llvm::ArrayRef<int64_t> ids,
                                        int64_t at) {
  if (at == 0)
    return tokenizer.decode(ids.take_front());
  // With the token before it, since the first white space of a text may be left out.
  auto before = tokenizer.decode(ids[at - 1]), both = tokenizer.decode(ids.slice(at - 1, 2));
  if (!before || !both)
    return llvm::joinErrors(before.takeError(), both.takeError());
  llvm::StringRef added = *both;
  return added.consume_front(*before) ? added.str() : "";
}

/// Whether a unit begins with `text` behind a text that ends so.
bool begins(TextUnit unit, const Ending &ending, llvm::StringRef text) {
  bool space = ending.space, newLine = ending.newLine;
  std::optional<char32_t> first; // that is no white space
  text::forEachCodePoint(text, [&](char32_t c, size_t, size_t) {
    if (first)
      return;
    if (text::isWhiteSpace(c)) {
      space = true;
      newLine |= c == U'\n';
    } else {
      first = c;
    }
  });
  if (!first)
    return false;
  if (unit == TextUnit::Word)
    return space || text::isChinese(*first);
  const bool closes = !space && closing.find(*first) != closing.npos;
  return newLine || (ending.wideStop && !closes) || (ending.stop && space);
}

} // namespace

llvm::Expected<std::vector<int64_t>> ctxc::unitStarts(const Tokenizer &tokenizer,
                                                      llvm::ArrayRef<int64_t> ids, int64_t front,
                                                      TextUnit unit) {
  auto places = llvm::seq<int64_t>(front, ids.size());
  if (unit == TextUnit::Token)
    return std::vector<int64_t>(places.begin(), places.end());
  std::vector<int64_t> starts;
  Ending ending;
  for (int64_t at : places) {
    auto text = textOfToken(tokenizer, ids, at);
    if (!text)
      return text.takeError();
    if (at == front || begins(unit, ending, *text)) {
      starts.push_back(at);
      ending = {};
    }
    ending.add(*text);
  }
  return starts;
}
