// Tokens as people read them: by the texts that the tokenizers package and sentencepiece have for
// them.
#include "ctxc/Tokenizer/TokenName.h"
#include "test/unit/Checkpoint/Fixture.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

TEST(TokenName, VisibleText) {
  for (auto [bytes, shown] : {std::pair<StringRef, StringRef>{" is", "␣is"},
                              {"\n\n", "\\n\\n"},
                              {"\t\r", "\\t\\r"},
                              {"û", "û"},
                              {"\xc3", "\\xc3"},
                              {" \xf0\x9f", "␣\\xf0\\x9f"},
                              {"\x1b[2J", "\\x1b[2J"},
                              {"", ""}})
    EXPECT_EQ(visibleText(bytes), shown.str());
}

TEST(TokenName, WithoutATokenizerTheId) {
  TokenName name;
  EXPECT_EQ(name(7), "7");
  EXPECT_EQ(name.text(7), "7");
  EXPECT_EQ(name.piece(-1), "(embedding)");
}

/// What all tokens stand for, one after the other, is the text that another program decodes; but
/// for the space in front of a text, and invalid bytes.
TEST(TokenName, TheBytesOfTokensAreTheText) {
  for (StringRef kind : {"byte-level", "metaspace", "tiny", "word-piece"}) {
    std::string folder = (CTXC_SOURCE_DIR "/test/tokenizers/" + kind).str();
    std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(folder));
    auto text = MemoryBuffer::getFile(folder + "/expected.json");
    json::Value expected = cantFail(json::parse((*text)->getBuffer()));
    size_t compared = 0;
    for (const json::Value &each : *expected.getAsArray()) {
      std::string bytes;
      for (const json::Value &id : *each.getAsObject()->getArray("plain"))
        if (int64_t token = *id.getAsInteger(); !cantFail(tokenizer->decode(token)).empty() ||
                                                tokenizer->bytes(token) != tokenizer->piece(token))
          bytes += tokenizer->bytes(token);
      StringRef decoded = *each.getAsObject()->getString("decoded");
      if (!json::isUTF8(bytes))
        continue;
      EXPECT_EQ(StringRef(bytes).ltrim(' '), decoded.ltrim(' ')) << kind.str();
      ++compared;
    }
    EXPECT_GT(compared, 10u) << kind.str();
  }
}

TEST(TokenName, PartsOfCharactersAreBytes) {
  std::unique_ptr<Tokenizer> tokenizer =
      cantFail(Tokenizer::open(CTXC_SOURCE_DIR "/test/tokenizers/byte-level"));
  TokenName name(*tokenizer);
  size_t parts = 0;
  for (int64_t id = 0; id < tokenizer->size(); ++id) {
    std::string bytes = name.bytes(id);
    EXPECT_TRUE(json::isUTF8(name.text(id)) && json::isUTF8(name(id)));
    EXPECT_EQ(name(id).find_first_of(" \n"), std::string::npos) << name(id);
    if (json::isUTF8(bytes))
      continue;
    ++parts;
    EXPECT_HAS(name(id), "\\x");
    EXPECT_EQ(name.text(id), name.text(id));
  }
  EXPECT_GT(parts, 60u); // of 128 bytes that are no character
}

} // namespace
