#include "ctxc/Checkpoint/JsonTree.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

JsonTree treeOf(llvm::StringRef text) { return llvm::cantFail(JsonTree::parse(text.str(), "t")); }

std::string whyRefused(llvm::StringRef text) {
  auto tree = JsonTree::parse(text.str(), "t");
  return tree ? "accepted" : llvm::toString(tree.takeError());
}

TEST(JsonTree, HasMembersAndElementsInOrder) {
  JsonTree tree = treeOf(R"({"b": [1, {"x": []}, "two"], "a": {}, "c": 3})");
  std::string seen;
  for (JsonView member : tree.root())
    seen += (member.key() + std::to_string(member.size()) + " ").str();
  EXPECT_EQ(seen, "b3 a0 c0 ");
  std::string kinds;
  for (JsonView element : tree.root()["b"])
    kinds += element.isObject() ? 'o' : element.text() ? 't' : element.integer() ? 'i' : '?';
  EXPECT_EQ(kinds, "iot");
  EXPECT_TRUE((*++tree.root()["b"].begin())["x"].isArray());
  EXPECT_EQ(tree.root()["c"].integer(), 3);
}

TEST(JsonTree, WhatIsAbsentHasNothing) {
  JsonTree tree = treeOf(R"({"a": "text", "n": null})");
  for (JsonView none : {tree.root()["b"], tree.root()["a"]["b"], tree.root()["n"]["b"]["c"]}) {
    EXPECT_FALSE(none);
    EXPECT_FALSE(none.text() || none.flag() || none.number() || none.integer());
    EXPECT_TRUE(none.begin() == none.end());
  }
  EXPECT_TRUE(bool(tree.root()["n"]));
  EXPECT_FALSE(tree.root()["n"].text());
}

TEST(JsonTree, DecodesStrings) {
  JsonTree tree = treeOf(R"({"k\u0065y": "a\n\"\u00e9\ud83d\ude00", "plain": "é"})");
  EXPECT_EQ(tree.root()["key"].text(), "a\n\"é😀");
  EXPECT_EQ(tree.root()["plain"].text(), "é");
}

TEST(JsonTree, ReadsNumbersAndFlags) {
  JsonTree tree =
      treeOf("[9223372036854775807, -2, 3.0, 1.5, 1e3, 9223372036854775808, true, false]");
  std::vector<std::optional<int64_t>> integers;
  std::vector<std::optional<double>> numbers;
  for (JsonView value : tree.root()) {
    integers.push_back(value.integer());
    numbers.push_back(value.number());
  }
  EXPECT_EQ(integers,
            (std::vector<std::optional<int64_t>>{INT64_MAX, -2, 3, {}, 1000, {}, {}, {}}));
  EXPECT_EQ(numbers[3], 1.5);
  EXPECT_EQ(numbers[5], 9223372036854775808.0);
  EXPECT_FALSE(numbers[6]);
  std::vector<std::optional<bool>> flags;
  for (JsonView value : tree.root())
    flags.push_back(value.flag());
  EXPECT_EQ(flags.front(), std::nullopt);
  EXPECT_EQ(flags[6], true);
  EXPECT_EQ(flags[7], false);
}

TEST(JsonTree, RefusesWhatStrictJsonDoes) {
  EXPECT_EQ(whyRefused(R"({"a": 1, "\u0061": 2})"),
            "t: at byte 21: the key 'a' is given twice in the object that ends here");
  EXPECT_EQ(whyRefused(std::string(65, '[')), "t: at byte 65: nested more than 64 deep");
  EXPECT_EQ(whyRefused("\"\xff\""), "t: at byte 1: not valid UTF-8");
  EXPECT_EQ(whyRefused("[1, tru]"), "t: at byte 4: found 'tru]', expected a number");
  EXPECT_EQ(whyRefused("[1] 2"), "t: at byte 4: found '2' after the end of the JSON text");
  EXPECT_EQ(whyRefused(""), "t: at byte 0: the text ends where a value was expected");
  EXPECT_EQ(whyRefused("[1, 2"), "t: at byte 5: the text ends where ',' was expected");
}

TEST(JsonTree, OutlivesWhatItWasMadeOf) {
  std::optional<JsonTree> moved;
  {
    JsonTree tree = treeOf(R"(["one", "t\u0077o"])");
    moved = std::move(tree);
  }
  EXPECT_EQ((*moved->root().begin()).text(), "one");
  EXPECT_EQ((*++moved->root().begin()).text(), "two");
}

TEST(StrictJson, PythonsNumbersAreObjects) {
  auto parsed =
      parsePythonJson(R"({"a": [0.0, Infinity], "b": -Infinity, "c": "NaN", "d": NaN})", "t");
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  const llvm::json::Object &o = *parsed->getAsObject();
  EXPECT_EQ((*o.getArray("a"))[1].getAsObject()->getString("__float__"),
            llvm::StringRef("Infinity"));
  EXPECT_EQ(o.getObject("b")->getString("__float__"), llvm::StringRef("-Infinity"));
  EXPECT_EQ(o.getString("c"), llvm::StringRef("NaN"));
  EXPECT_EQ(o.getObject("d")->getString("__float__"), llvm::StringRef("NaN"));
  EXPECT_NE(
      llvm::toString(parsePythonJson("[Infinite]", "t").takeError()).find("expected a number"),
      std::string::npos);
  EXPECT_NE(llvm::toString(parseStrictJson("[NaN]", "t").takeError()).find("expected a number"),
            std::string::npos);
}

TEST(StrictJson, NamesWhatIsNoJson) {
  EXPECT_EQ(
      llvm::toString(parseStrictJson("\xef\xbb\xbf{}", "t").takeError()),
      "t: begins with a byte order mark, which JSON has not; save the file as UTF-8 without one");
  EXPECT_EQ(llvm::toString(parseStrictJson("{ // of mine\n}", "t").takeError()),
            "t: at byte 2: found a comment, which JSON has not; remove it");
}

} // namespace
