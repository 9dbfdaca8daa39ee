#include "ctxc/Support/OwnFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace llvm;

namespace {

struct OwnFile : testing::Test {
  void SetUp() override { ASSERT_FALSE(sys::fs::createTemporaryFile("ctxc-own", "", path)); }
  void TearDown() override { sys::fs::remove(path); }
  bool isOwn(StringRef content) {
    std::error_code error;
    raw_fd_ostream(path, error) << content;
    return !error && ctxc::isOwnFile(path);
  }
  /// A safetensors file without tensors.
  static std::string safetensors(StringRef header) {
    std::string text;
    raw_string_ostream os(text);
    support::endian::write<uint64_t>(os, header.size(), endianness::little);
    os << header;
    return text;
  }
  SmallString<128> path;
};

TEST_F(OwnFile, IsKnownByItsMark) {
  EXPECT_TRUE(isOwn("// Written by ctxc import.\nmodule {\n"));
  EXPECT_TRUE(isOwn("\x7f"
                    "ELF" +
                    std::string(100000, '\0') + "\n// Written by ctxc compile.\n"));
  EXPECT_TRUE(
      isOwn("\x03\x02\x23\x07" + std::string(100000, '\1') + "Written by ctxc compile" + '\1'));
  EXPECT_FALSE(isOwn(std::string(5000, ' ') + "Written by ctxc." + std::string(5000, ' ')));
  EXPECT_FALSE(isOwn("module {\n"));
  EXPECT_FALSE(isOwn(""));
}

TEST_F(OwnFile, JsonIsKnownByItsFormat) {
  EXPECT_TRUE(isOwn("{\n  \"a\": [],\n  \"format\": \"ctxc-proof\"\n}\n"));
  EXPECT_TRUE(isOwn("{\"format\":\"ctxc-experiment\"}\n{\"key\":1}\n{\"cut o"));
  EXPECT_FALSE(isOwn("{\"format\": \"other\"}"));
  EXPECT_FALSE(isOwn("{\"a\": {\"format\": \"ctxc-proof\"}}"));
  EXPECT_FALSE(isOwn("{\"format\": \"ctxc-proof\""));
  EXPECT_FALSE(isOwn("{\"format\": " + std::string(100000, '[')));
}

TEST_F(OwnFile, SafetensorsAreKnownByTheirMetadata) {
  EXPECT_TRUE(isOwn(safetensors("{\"__metadata__\":{\"format\":\"ctxc-patch\"}}")));
  EXPECT_FALSE(isOwn(safetensors("{\"__metadata__\":{\"format\":\"pt\"}}")));
  EXPECT_TRUE(isOwn(safetensors(
      "{\"__metadata__\":{\"format_version\":\"1\",\"model_hash\":\"0\",\"tokens\":\"\"}}")));
  EXPECT_FALSE(isOwn(safetensors("{}")));
  std::string text = safetensors("{\"__metadata__\":{\"format\":\"ctxc-patch\"}}");
  EXPECT_FALSE(isOwn(StringRef(text).drop_back(3)));
}

} // namespace
