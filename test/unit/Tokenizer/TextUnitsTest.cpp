// Where words and sentences begin, by a tokenizer whose tokens are given.
#include "ctxc/Tokenizer/TextUnits.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

/// Token i is `pieces[i]`; the first white space of a text is left out, as sentencepiece's
/// decoders do.
class Pieces : public Tokenizer {
public:
  explicit Pieces(std::vector<std::string> pieces) : pieces(std::move(pieces)) {}
  llvm::Expected<std::vector<int64_t>> encode(llvm::StringRef, bool) const override {
    return makeError("is not asked");
  }
  llvm::Expected<std::string> decode(llvm::ArrayRef<int64_t> ids) const override {
    std::string text;
    for (int64_t id : ids)
      text += pieces[id];
    return text.substr(!text.empty() && text[0] == ' ');
  }
  std::string piece(int64_t id) const override { return pieces[id]; }
  std::string bytes(int64_t id) const override { return pieces[id]; }
  int64_t size() const override { return pieces.size(); }
  bool addsSpecial() const override { return false; }

private:
  std::vector<std::string> pieces;
};

/// The units of all tokens from `front` on, divided by bars.
std::string units(std::vector<std::string> pieces, TextUnit unit, int64_t front = 0) {
  Pieces tokenizer(pieces);
  auto range = llvm::seq<int64_t>(0, pieces.size());
  std::vector<int64_t> ids(range.begin(), range.end());
  std::string text;
  auto starts = llvm::cantFail(unitStarts(tokenizer, ids, front, unit));
  for (int64_t at = front; at < int64_t(ids.size()); ++at)
    text += (at > front && llvm::is_contained(starts, at) ? "|" : "") + pieces[at];
  EXPECT_EQ(starts.front(), front);
  return text;
}

TEST(TextUnits, Words) {
  EXPECT_EQ(
      units({"He", " live", "s", " in", " Ve", "rona", ".", "\n", "So", " ", "do"}, TextUnit::Word),
      "He| lives| in| Verona.\n|So |do");
  EXPECT_EQ(units({"我", "们", "Tai", "pei", "去"}, TextUnit::Word), "我|们Taipei|去");
}

TEST(TextUnits, Sentences) {
  EXPECT_EQ(units({"He", " left", ".", " \"", "Why", "?", "\"", " Nobody", " paid", " 3", ".", "5",
                   " coins", " (", "yet", "!)", " So"},
                  TextUnit::Sentence),
            "He left.| \"Why?\"| Nobody paid 3.5 coins (yet!)| So");
  EXPECT_EQ(units({"name", ":", " x", "\n", "age", ": 4", "\n\n", "end"}, TextUnit::Sentence),
            "name: x\n|age: 4\n\n|end");
  EXPECT_EQ(units({"他", "走", "。", "”", "我", "来"}, TextUnit::Sentence), "他走。”|我来");
}

TEST(TextUnits, BeginBehindTheFront) {
  EXPECT_EQ(units({"<s>", "a", "b", " c"}, TextUnit::Word, 1), "ab| c");
  EXPECT_EQ(units({"<s>", "a", "b", " c"}, TextUnit::Token, 1), "a|b| c");
}

/// The bytes of a character, of which decode makes something else than of each by itself.
TEST(TextUnits, DoNotDivideACharacter) {
  class Bytes : public Pieces {
  public:
    Bytes() : Pieces({"a.", "\xe2", "\x82\xac", " b"}) {}
    llvm::Expected<std::string> decode(llvm::ArrayRef<int64_t> ids) const override {
      if (ids == llvm::ArrayRef<int64_t>{1, 2})
        return "€";
      std::string text;
      for (int64_t id : ids)
        text += id == 1 || id == 2 ? "\ufffd" : piece(id);
      return text;
    }
  } tokenizer;
  EXPECT_EQ(llvm::cantFail(unitStarts(tokenizer, {0, 1, 2, 3}, 0, TextUnit::Word)),
            (std::vector<int64_t>{0, 3}));
}

} // namespace
