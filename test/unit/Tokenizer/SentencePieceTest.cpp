// The shipped model's tokenizer, and directories without a readable one.
#include "ctxc/Tokenizer/Tokenizer.h"
#include "test/unit/Checkpoint/Fixture.h"
#include <cstring>
#include <limits>
#include <random>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

const char *const shipped = CTXC_SOURCE_DIR "/examples/models/gemma3-kjv-1m";

// The ids are those of sentencepiece's Python binding on the same file.
TEST(Tokenizer, EncodesAndDecodesAsSentencepieceDoes) {
  std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(shipped));
  EXPECT_EQ(tokenizer->size(), 2048);
  EXPECT_TRUE(tokenizer->addsSpecial());
  using Ids = std::vector<int64_t>;
  std::string text = "The king went to the market.";
  Ids ids = {452, 415, 540, 292, 262, 277, 1163, 364, 2009};
  EXPECT_EQ(cantFail(tokenizer->encode(text, /*addBos=*/false)), ids);
  EXPECT_EQ(cantFail(tokenizer->decode(ids)), text);
  ids.insert(ids.begin(), 2);
  EXPECT_EQ(cantFail(tokenizer->encode(text, /*addBos=*/true)), ids);
  EXPECT_EQ(cantFail(tokenizer->decode(ids)), text); // control pieces have no text
  EXPECT_EQ(cantFail(tokenizer->encode("", /*addBos=*/true)), Ids{2});
  EXPECT_EQ(tokenizer->piece(415), "▁king");
  EXPECT_EQ(tokenizer->piece(14), "<0x0A>");

  std::string bytes = "naïve ☃ 中\n\ttab  \xff";
  EXPECT_EQ(cantFail(tokenizer->decode(cantFail(tokenizer->encode("naïve ☃ 中\n\ttab", true)))),
            "naïve ☃ 中\n\ttab");
  EXPECT_TRUE(bool(tokenizer->encode(bytes, true))); // not UTF-8, but no crash
}

TEST(Tokenizer, DecodesTheSameAtRest) {
  std::unique_ptr<Tokenizer> awake = cantFail(Tokenizer::open(shipped)),
                             atRest = cantFail(Tokenizer::open(shipped));
  atRest->releaseMemory();
  std::mt19937 random(1);
  for (int length = 0; length < 40; ++length) {
    std::vector<int64_t> ids(length);
    for (int64_t &id : ids) // the lower ids are mostly control, unknown and byte pieces
      id = random() % (length % 2 ? 280 : awake->size());
    EXPECT_EQ(cantFail(atRest->decode(ids)), cantFail(awake->decode(ids)));
  }
  EXPECT_EQ(cantFail(atRest->encode("In the beginning", true)),
            cantFail(awake->encode("In the beginning", true)));
}

TEST(Tokenizer, IdsOutOfRange) {
  std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(shipped));
  for (int64_t id : {int64_t(-1), int64_t(2048), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(messageOf(tokenizer->decode({5, id})),
              "token id " + std::to_string(id) + " is out of range; the tokenizer has 2048 pieces");
    EXPECT_EQ(tokenizer->piece(id), "<id " + std::to_string(id) + ">");
  }
}

TEST(Tokenizer, CutShortAtAnyPlaceIsNoCrash) {
  auto whole = MemoryBuffer::getFile(std::string(shipped) + "/tokenizer.model");
  ASSERT_TRUE(bool(whole));
  SmallString<128> dir;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("ctxc-unit", dir));
  StringRef bytes = (*whole)->getBuffer();
  int64_t refused = 0, cuts = 0;
  for (size_t size = 1; size < bytes.size(); size += 997, ++cuts) {
    std::error_code ec;
    raw_fd_ostream(dir.str().str() + "/tokenizer.model", ec) << bytes.take_front(size);
    Expected<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(dir);
    refused += !tokenizer;
    if (!tokenizer)
      consumeError(tokenizer.takeError());
  }
  EXPECT_GT(refused, cuts / 2);
  sys::fs::remove_directories(dir);
}

struct TokenizerFiles : TempDirectory {
  std::string opened() { return messageOf(Tokenizer::open(dir.str())); }
};

TEST_F(TokenizerFiles, OneThatChangedIsAnError) {
  auto whole = MemoryBuffer::getFile(std::string(shipped) + "/tokenizer.model");
  ASSERT_TRUE(bool(whole));
  std::string bytes = (*whole)->getBuffer().str();
  std::string another = bytes; // with the same number of pieces
  size_t king = another.find("▁king");
  ASSERT_NE(king, std::string::npos);
  another.replace(king, std::strlen("▁king"), "▁ding"); // with the same length
  for (const std::string &changed : {bytes.substr(0, bytes.size() / 4), "x" + bytes, another}) {
    write("tokenizer.model", bytes);
    std::unique_ptr<Tokenizer> tokenizer = cantFail(Tokenizer::open(dir.str()));
    tokenizer->releaseMemory();
    write("tokenizer.model", changed);
    EXPECT_HAS(messageOf(tokenizer->decode({415, 2000})),
               "tokenizer.model: was changed while it was in use");
  }
}

// test/judge/side_files.py compares such directories with transformers.
TEST_F(TokenizerFiles, TokensAndFlagsOfTheFilesBesideIt) {
  using Ids = std::vector<int64_t>;
  ASSERT_FALSE(
      sys::fs::copy_file(std::string(shipped) + "/tokenizer.model", path("tokenizer.model")));
  auto opened = [&](StringRef config) {
    write("tokenizer_config.json", config);
    return cantFail(Tokenizer::open(dir.str()));
  };
  const std::string tool = R"("added_tokens_decoder": {"2048": {"content": "<tool>"},
                              "2049": {"content": "<end>", "special": true}})";
  std::unique_ptr<Tokenizer> tokenizer = opened("{" + tool + "}");
  EXPECT_EQ(cantFail(tokenizer->encode("<tool>king<end>", false)).front(), 2048);
  EXPECT_EQ(cantFail(tokenizer->encode("<tool>king<end>", true)).front(), 2);
  Ids ids = {452, 2048, 415, 2049};
  EXPECT_EQ(cantFail(tokenizer->decode(ids)), "The<tool> king");
  tokenizer->releaseMemory();
  EXPECT_EQ(cantFail(tokenizer->decode(ids)), "The<tool> king");
  EXPECT_EQ(tokenizer->piece(2049), "<end>");
  EXPECT_EQ(tokenizer->size(), 2050);
  EXPECT_EQ(messageOf(tokenizer->decode({452, 2050})),
            "token id 2050 is out of range; the tokenizer has 2050 ids");
  // Of Llama's class: spaces in front, and tokens around a text as the config says.
  const std::string llama = R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<bos>",
                               "eos_token": "<eos>", )";
  tokenizer = opened(llama + R"("add_eos_token": true, )" + tool + "}");
  EXPECT_EQ(cantFail(tokenizer->encode("king<tool> king", true)), (Ids{415, 2048, 415, 1}));
  EXPECT_EQ(cantFail(tokenizer->decode({415, 2048, 415})), "king<tool> king");
  tokenizer = opened(llama + R"("legacy": true, "add_bos_token": true, )" + tool + "}");
  EXPECT_EQ(cantFail(tokenizer->encode("king<tool>king", true)), (Ids{2, 415, 2048, 415}));
  tokenizer = opened(llama + R"("add_prefix_space": false, )" + tool + "}");
  EXPECT_EQ(cantFail(tokenizer->encode(" king<tool> king", true)), (Ids{415, 2048, 415}));
  EXPECT_FALSE(tokenizer->addsSpecial());
}

TEST_F(TokenizerFiles, AbsentOnesPointAtTokens) {
  EXPECT_HAS(opened(), "has no tokenizer.json and no tokenizer.model: give token ids "
                       "instead of text");
}

TEST_F(TokenizerFiles, MalformedOnesAreErrors) {
  for (const std::string &bytes :
       {std::string("x"), std::string(1000, '\xff'), std::string(1000, '\0'),
        std::string("\x0a\x05\x0a\x01\x61\x15\x00", 7), std::string("version https://git-lfs")}) {
    write("tokenizer.model", bytes);
    EXPECT_HAS(opened(), "tokenizer.model: is not a sentencepiece model");
  }
}

} // namespace
