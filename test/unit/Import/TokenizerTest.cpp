// Directories without a readable tokenizer. (Those with one are tested with the
// models that they belong to.)
#include "Fixture.h"
#include "ctxc/Import/Tokenizer.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct TokenizerFiles : TempDirectory {
  std::string opened() { return messageOf(Tokenizer::open(dir.str())); }
};

TEST_F(TokenizerFiles, AbsentOnesPointAtTokens) {
  EXPECT_HAS(opened(), "has no tokenizer.model: give token ids with --tokens");
  write("tokenizer.json", "{}");
  EXPECT_HAS(opened(), "tokenizer.json is there, but only sentencepiece models are read: give token "
                       "ids with --tokens");
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
