// Memory in large pages.
#include "ctxc/Support/LargePages.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace ctxc;

namespace {

TEST(LargePages, BlocksLieApartAndKeepWhatIsWritten) {
  LargePages pages;
  struct Block {
    uint8_t *at;
    uint64_t bytes;
  };
  std::vector<Block> blocks;
  // More than a chunk, less than one, exactly one, and odd sizes.
  for (uint64_t bytes :
       {uint64_t(1), uint64_t(63), uint64_t(65), uint64_t(3) << 20, uint64_t(64) << 20,
        uint64_t(70) << 20, uint64_t(1) << 20, uint64_t(61) << 20, uint64_t(4) << 20}) {
    uint8_t *block = pages.take(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    block[0] = block[bytes - 1] = uint8_t(blocks.size() + 1);
    blocks.push_back({block, bytes});
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].at[0], i + 1);
    EXPECT_EQ(blocks[i].at[blocks[i].bytes - 1], i + 1);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(blocks[i].at + blocks[i].bytes <= blocks[j].at ||
                  blocks[j].at + blocks[j].bytes <= blocks[i].at);
  }
}

TEST(LargePages, WhatCannotBeHadIsNull) {
  LargePages pages;
  EXPECT_EQ(pages.take(uint64_t(1) << 60), nullptr);
  EXPECT_NE(pages.take(1), nullptr);
}

} // namespace
