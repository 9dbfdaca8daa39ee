// Untrusted text: how deep its brackets nest, and how a terminal shows it.
#include "ctxc/Support/ForeignText.h"
#include "gtest/gtest.h"

using namespace ctxc;

static std::string nestingOf(const std::string &text) {
  llvm::Error error = checkNesting(text, "file");
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(ForeignText, NestingIsBounded) {
  for (const char *pair : {"[]", "()", "{}", "<>"}) {
    std::string open(1, pair[0]), close(1, pair[1]), text = "a\n";
    for (unsigned i = 0; i < deepestNesting; ++i)
      text += open;
    EXPECT_EQ(nestingOf(text), "");
    EXPECT_EQ(nestingOf(text + open), "file:2: brackets are nested more than 256 deep");
    std::string wide;
    for (int i = 0; i < 20000; ++i)
      wide += open + close;
    EXPECT_EQ(nestingOf(wide), "");
  }
  EXPECT_NE(nestingOf(std::string(20000, '[')), "");
}

TEST(ForeignText, StringsCommentsAndArrowsDoNotCount) {
  std::string many(1000, '[');
  EXPECT_EQ(nestingOf("\"" + many + "\""), "");
  EXPECT_EQ(nestingOf("\"\\\"" + many + "\""), "");
  EXPECT_EQ(nestingOf("// " + many + "\n"), "");
  std::string arrows;
  for (int i = 0; i < 1000; ++i)
    arrows += "(a) -> (b) ";
  EXPECT_EQ(nestingOf(arrows), "");
  // The > of an arrow closes no bracket.
  std::string hidden;
  for (int i = 0; i < 1000; ++i)
    hidden += "[->";
  EXPECT_NE(nestingOf(hidden), "");
  EXPECT_EQ(nestingOf("\""), "");
  EXPECT_EQ(nestingOf("\"\\"), "");
}

TEST(ForeignText, ControlCharactersAreShownAsNumbers) {
  EXPECT_EQ(printable("a\tb\nπ ▁x"), "a\tb\nπ ▁x");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\x7f\r"), "\\x7f\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
}
