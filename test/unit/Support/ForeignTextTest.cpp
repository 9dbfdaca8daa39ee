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

/// One line each: `first`, then `next` with @ in the place of the number of the line before.
static std::string aliases(const std::string &sigil, const std::string &first,
                           const std::string &next, int count) {
  std::string text = sigil + "a0 = " + first + "\n";
  for (int i = 1; i < count; ++i) {
    std::string line = next;
    for (size_t at; (at = line.find('@')) != std::string::npos;)
      line.replace(at, 1, sigil + "a" + std::to_string(i - 1));
    text += sigil + "a" + std::to_string(i) + " = " + line + "\n";
  }
  return text;
}

TEST(ForeignText, AliasesAreNestingToo) {
  EXPECT_EQ(nestingOf(aliases("#", "1", "[@]", 100)), "");
  EXPECT_EQ(nestingOf(aliases("#", "1", "[@]", 200)),
            "file:130: aliases are nested more than 256 deep");
  EXPECT_NE(nestingOf(aliases("!", "i32", "tuple<@>", 200)), "");
  EXPECT_NE(nestingOf(aliases("#", "1", "@", 300)), "");
  // Wherever they are used.
  EXPECT_NE(nestingOf(aliases("#", "1", "[@]", 120) + std::string(100, '[') + "#a119"), "");
  // An alias that is not one inside of another is none.
  EXPECT_EQ(nestingOf(aliases("#", "1", "[2]", 20000)), "");
  // Attributes of dialects, symbols and values are no aliases.
  EXPECT_EQ(nestingOf(aliases("#", "1", "#xf.a<#xf.b, %a0, @a0>", 1000)), "");
}

TEST(ForeignText, AliasesAreNoWayToALargeText) {
  EXPECT_EQ(nestingOf(aliases("#", "[1]", "[@, @]", 20)), "");
  std::string said = nestingOf(aliases("#", "[1]", "[@, @]", 64));
  EXPECT_NE(said.find("aliases replaced"), std::string::npos) << said;
  // Many uses of one that is large.
  std::string many = aliases("#", "[1]", "[@, @]", 20);
  for (int i = 0; i < 200; ++i)
    many += "#a19,";
  EXPECT_NE(nestingOf(many), "");
  // The text behind the last alias is not part of it.
  for (const char *op : {"xf.op", "module", "%x = foo", "\"xf.op\"("}) {
    std::string text = "#a = [1]\n" + std::string(op) + " {";
    for (int i = 0; i < 30000; ++i)
      text += "#a \"twenty bytes or so\"\n";
    EXPECT_EQ(nestingOf(text), "") << op;
  }
}

TEST(ForeignText, OperatorsOfOneExpressionAreNesting) {
  auto times = [](const std::string &what, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += what;
    return text;
  };
  for (const char *part : {"-", "d0 + ", "d0 * ", "d0 mod ", "d0 floordiv 2 - "}) {
    EXPECT_EQ(nestingOf("affine_map<(d0) -> (" + times(part, 100) + "d0)>"), "") << part;
    EXPECT_EQ(nestingOf("affine_map<(d0) -> (" + times(part, 300) + "d0)>"),
              "file:1: operators are nested more than 256 deep")
        << part;
  }
  EXPECT_EQ(nestingOf("[" + times("-1, ", 1000) + "1]"), "");
  EXPECT_EQ(nestingOf(times("%a-b = xf.bias %x + %p : tensor<4xf32>\n", 1000)), "");
  // Bounds of affine sets are no brackets.
  EXPECT_EQ(nestingOf("(" + times("d0 >= 0, d0 <= 1, ", 1000) + ")"), "");
  EXPECT_NE(nestingOf(times("[d0 >= 0, ", 300)), "");
}

TEST(ForeignText, ControlCharactersAreShownAsNumbers) {
  EXPECT_EQ(printable("a\tb\nπ ▁x"), "a\tb\nπ ▁x");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\x7f\r"), "\\x7f\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
}
