// Vocabularies inside GGUF files: what a file says, what llama.cpp takes where it does not, and
// what is refused. test/judge/gguf_vocabularies.py compares ids with llama.cpp's.
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "test/unit/Checkpoint/GgufFixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

using Ids = std::vector<int64_t>;

std::string yesNo(StringRef name, bool value) { return key(name, 7, raw<uint8_t>(value)); }

std::string texts(StringRef name, ArrayRef<std::string> values) {
  std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(values.size());
  for (const std::string &value : values)
    bytes += text(value);
  return key(name, 9, bytes);
}

template <typename T> std::string numbers(StringRef name, uint32_t type, ArrayRef<T> values) {
  std::string bytes = raw(type) + raw<uint64_t>(values.size());
  for (T value : values)
    bytes += raw(value);
  return key(name, 9, bytes);
}

constexpr int32_t normal = 1, unknown = 2, control = 3, userDefined = 4;

struct GgufTokenizer : GgufBytes {
  std::unique_ptr<Tokenizer> tokenizer;

  /// A file with these keys; the message if it cannot be read.
  std::string opened(StringRef model, const std::vector<std::string> &tokens,
                     const std::vector<int32_t> &kinds, std::vector<std::string> more) {
    keys = std::move(more);
    keys.push_back(words("tokenizer.ggml.model", model));
    keys.push_back(texts("tokenizer.ggml.tokens", tokens));
    keys.push_back(numbers<int32_t>("tokenizer.ggml.token_type", 5, kinds));
    auto read = Tokenizer::open(write("m.gguf", file()));
    if (!read)
      return toString(read.takeError());
    tokenizer = std::move(*read);
    return "";
  }
  Ids encode(StringRef text, bool addSpecial = true) {
    return cantFail(tokenizer->encode(text, addSpecial));
  }

  /// Byte pairs: a, b, a digit, spaces, "ab", "11", and tokens of ends.
  std::string bytePairs(std::vector<std::string> more) {
    more.push_back(texts("tokenizer.ggml.merges", {"a b", "1 1", "Ċ Ċ", "Ġ ab"}));
    return opened("gpt2",
                  {"a", "b", "1", "Ġ", "Ċ", "ab", "11", "ĊĊ", "Ġab", "<s>", "</s>", "!", "<tool>"},
                  {normal, normal, normal, normal, normal, normal, normal, normal, normal, control,
                   control, normal, userDefined},
                  std::move(more));
  }
  /// sentencepiece's.
  std::string pieces(std::vector<std::string> more) {
    more.push_back(numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -1, -2, -3, -4, 0}));
    return opened("llama", {"<unk>", "<s>", "</s>", "▁a", "▁", "a", "b", "!"},
                  {unknown, control, control, normal, normal, normal, normal, normal},
                  std::move(more));
  }
};

const std::string gpt2 = words("tokenizer.ggml.pre", "gpt-2");
const std::vector<std::string> ends = {integer("tokenizer.ggml.bos_token_id", 9),
                                       integer("tokenizer.ggml.eos_token_id", 10)};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.end(), ends.begin(), ends.end());
  return more;
}

TEST_F(GgufTokenizer, SplitsAsTheFileNamesIt) {
  for (auto [name, ids] : {std::pair<StringRef, Ids>{"gpt-2", {6, 8}},
                           {"smollm", {2, 2, 8}},
                           {"qwen2", {2, 2, 8}},
                           {"llama-bpe", {9, 6, 8}},
                           {"default", {6, 8}}}) {
    ASSERT_EQ(bytePairs(with({words("tokenizer.ggml.pre", name)})), "");
    EXPECT_EQ(encode("11 ab"), ids) << name.str();
    EXPECT_EQ(tokenizer->warning, "");
  }
}

TEST_F(GgufTokenizer, WithoutANameTheTextIsSplitAsByLlamaCpp) {
  ASSERT_EQ(bytePairs(ends), "");
  EXPECT_TRUE(StringRef(tokenizer->warning).contains("has no key 'tokenizer.ggml.pre'"));
  EXPECT_EQ(encode("\n\nab!"), (Ids{4, 4, 5, 11}));
  std::string message = bytePairs(with({words("tokenizer.ggml.pre", "tomorrow's")}));
  EXPECT_TRUE(StringRef(message).contains("key 'tokenizer.ggml.pre' = 'tomorrow's' is not known"));
  EXPECT_TRUE(StringRef(message).contains(" smollm,"));
}

// docs/tokenizers.md lists every name, with its judge.
TEST_F(GgufTokenizer, ThePageHasEveryNameOfASplit) {
  std::string message = bytePairs(with({words("tokenizer.ggml.pre", "?")}));
  SmallVector<StringRef> names;
  StringRef(message).split("known are ").second.split(names, ", ");
  EXPECT_GT(names.size(), 80u);
  auto page = MemoryBuffer::getFile(CTXC_SOURCE_DIR "/docs/tokenizers.md");
  ASSERT_TRUE(bool(page));
  for (StringRef name : names)
    EXPECT_TRUE((*page)->getBuffer().contains(("`" + name + "`").str())) << name.str();
}

TEST_F(GgufTokenizer, PutsTokensAroundATextAsTheFileSays) {
  for (bool bos : {false, true})
    for (bool eos : {false, true}) {
      std::vector<std::string> flags = {yesNo("tokenizer.ggml.add_bos_token", bos),
                                        yesNo("tokenizer.ggml.add_eos_token", eos)};
      auto around = [&](int64_t first, Ids ids, int64_t last) {
        if (bos)
          ids.insert(ids.begin(), first);
        if (eos)
          ids.push_back(last);
        return ids;
      };
      std::vector<std::string> more = with(flags);
      more.push_back(gpt2);
      ASSERT_EQ(bytePairs(more), "");
      EXPECT_EQ(encode("ab"), around(9, {5}, 10));
      EXPECT_EQ(encode("ab", false), Ids{5});
      EXPECT_EQ(tokenizer->addsSpecial(), bos || eos);
      ASSERT_EQ(pieces(flags), "");
      EXPECT_EQ(encode("a"), around(1, {3}, 2));
    }
  std::string message = bytePairs(with({gpt2, integer("tokenizer.ggml.add_bos_token", 1)}));
  EXPECT_TRUE(
      StringRef(message).contains("key 'tokenizer.ggml.add_bos_token' is not true or false"));
}

TEST_F(GgufTokenizer, HasDefaultsForIdsThatTheFileDoesNotGive) {
  ASSERT_EQ(pieces({}), "");
  EXPECT_EQ(encode("a!"), (Ids{1, 3, 7}));
  ASSERT_EQ(bytePairs({gpt2, yesNo("tokenizer.ggml.add_bos_token", true)}), "");
  EXPECT_EQ(encode("ab"), (Ids{11, 5}));
  EXPECT_TRUE(StringRef(bytePairs({words("tokenizer.ggml.pre", "glm4"),
                                   yesNo("tokenizer.ggml.add_bos_token", true)}))
                  .contains("has no 'tokenizer.ggml.bos_token_id'"));
  EXPECT_TRUE(StringRef(bytePairs({gpt2, integer("tokenizer.ggml.bos_token_id", 13)}))
                  .contains("key 'tokenizer.ggml.bos_token_id' = 13 is no token; there are 13"));
}

TEST_F(GgufTokenizer, SymbolsAreFoundInATextFirst) {
  ASSERT_EQ(bytePairs(with({gpt2})), "");
  EXPECT_EQ(encode("ab<tool>ab</s>", false), (Ids{5, 12, 5, 10}));
  EXPECT_EQ(cantFail(tokenizer->decode({5, 12, 10, 5})), "ab<tool>ab");
  // Each part gets the space that a text begins with.
  ASSERT_EQ(pieces({}), "");
  EXPECT_EQ(encode("a</s>a<unk>", false), (Ids{3, 2, 3, 0}));
  ASSERT_EQ(pieces({yesNo("tokenizer.ggml.add_space_prefix", false)}), "");
  EXPECT_EQ(encode("a</s>a", false), (Ids{5, 2, 5}));
}

// As in llama.cpp; the tokenizers package would merge a and b.
TEST_F(GgufTokenizer, ACharacterWithoutATokenSeparatesItsNeighbours) {
  ASSERT_EQ(bytePairs(with({gpt2})), "");
  EXPECT_EQ(encode("abxab"), (Ids{5, 5}));
  EXPECT_EQ(encode("axb"), (Ids{0, 1}));
}

// Phi 3's file has a second token of the unknown kind.
TEST_F(GgufTokenizer, OneTokenOfTheUnknownKindIsTheUnknownOne) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "▁a", "<|end|>"};
  std::vector<std::string> more = {integer("tokenizer.ggml.unknown_token_id", 0),
                                   words("general.name", "Phi-3 mini")};
  ASSERT_EQ(opened("llama", tokens, {unknown, control, control, normal, unknown}, more), "");
  EXPECT_EQ(encode("a<|end|>  a b"), (Ids{1, 3, 4, 3, 0})); // white space behind it is its own
}

TEST_F(GgufTokenizer, WordPieces) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                     "▁un",   "able",  "▁able", "▁,"};
  std::vector<int32_t> kinds = {control, control, control, control, normal, normal, normal, normal};
  std::vector<std::string> more = {integer("tokenizer.ggml.bos_token_id", 2),
                                   integer("tokenizer.ggml.seperator_token_id", 3),
                                   integer("tokenizer.ggml.unknown_token_id", 1)};
  ASSERT_EQ(opened("bert", tokens, kinds, more), "");
  EXPECT_EQ(encode("Unable, ABLE un-"), (Ids{2, 4, 5, 7, 6, 4, 1, 3}));
  EXPECT_EQ(encode("\u00dcn\u0323able", false), (Ids{4, 5}));
  EXPECT_EQ(cantFail(tokenizer->decode({2, 4, 5, 7, 6, 3})), "unable, able");
  more.push_back(yesNo("tokenizer.ggml.normalizer.lowercase", false));
  ASSERT_EQ(opened("bert", tokens, kinds, more), "");
  EXPECT_EQ(encode("Unable able", false), (Ids{1, 6}));
}

TEST_F(GgufTokenizer, Unigram) {
  std::vector<std::string> tokens = {"<pad>", "</s>", "<unk>", "▁", "▁a", "a", "aa", "▁aa"};
  std::vector<int32_t> kinds = {control, control, unknown, normal, normal, normal, normal, normal};
  std::vector<std::string> more = {
      numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -3, -2, -2, -3, -6}),
      yesNo("tokenizer.ggml.add_space_prefix", true)};
  ASSERT_EQ(opened("t5", tokens, kinds, more), "");
  EXPECT_EQ(encode("aa"), (Ids{4, 5, 1})); // -4 before -6
  EXPECT_EQ(encode(" a", false), (Ids{3, 4}));
  EXPECT_EQ(encode("xya", false), (Ids{3, 2, 5}));
  EXPECT_EQ(cantFail(tokenizer->decode({4, 5, 4, 1})), "aa a");
  more.push_back(yesNo("tokenizer.ggml.remove_extra_whitespaces", true));
  ASSERT_EQ(opened("t5", tokens, kinds, more), "");
  EXPECT_EQ(encode("  a   a  ", false), (Ids{4, 4}));
}

TEST_F(GgufTokenizer, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(StringRef(opened("rwkv", {"a"}, {normal}, {}))
                  .contains("key 'tokenizer.ggml.model' = 'rwkv' is not supported"));
  EXPECT_TRUE(StringRef(opened("gpt2", {"a", "\xff"}, {normal, normal}, {gpt2}))
                  .contains("key 'tokenizer.ggml.tokens': entry 1"));
  EXPECT_TRUE(StringRef(opened("gpt2", {"a"}, {7}, {gpt2})).contains("not from 1 to 6"));
  EXPECT_TRUE(
      StringRef(opened("gpt2", {"a"}, {normal}, {gpt2, texts("tokenizer.ggml.merges", {"aa"})}))
          .contains("key 'tokenizer.ggml.merges': entry 0, 'aa', is not two tokens"));
  EXPECT_TRUE(StringRef(opened("t5", {"a", "b", "<unk>"}, {normal, normal, unknown},
                               {key("tokenizer.ggml.precompiled_charsmap", 9,
                                    raw<uint32_t>(0) + raw<uint64_t>(4) + raw<uint32_t>(1 << 30))}))
                  .contains("is not a precompiled normalization of 4 bytes"));
}

} // namespace
