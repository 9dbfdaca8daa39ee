// What is known of a processor by its features, under whatever name.
#include "ctxc/Lowering/CpuTarget.h"
#include "test/unit/WithoutTiles.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

CpuTarget named(llvm::StringRef name) { return llvm::cantFail(CpuTarget::named(name)); }

TEST(CpuTarget, LinesAreAskedForAheadOnSapphireRapidsAndItsSuccessors) {
  for (llvm::StringRef name : {"sapphirerapids", "emeraldrapids", "graniterapids"})
    EXPECT_TRUE(named(name).readings.half.asksAhead) << name.str();
  for (llvm::StringRef name : {"x86-64-v4", "cascadelake", "cooperlake", "rocketlake", "znver5"})
    EXPECT_FALSE(named(name).readings.half.asksAhead) << name.str();
}

TEST(CpuTarget, HowManyRowsAreReadSideBySideDependsOnTheLanes) {
  for (llvm::StringRef name : {"x86-64-v3", "haswell", "znver3"})
    EXPECT_EQ(named(name).readings, Readings::ofEightLanes()) << name.str();
  for (llvm::StringRef name : {"x86-64-v4", "cascadelake", "znver4"})
    EXPECT_EQ(named(name).readings, Readings::ofSixteenLanes()) << name.str();
  EXPECT_EQ(named("x86-64-v2").readings, Readings());
}

/// As in a virtual machine that reports another model number.
TEST(CpuTarget, WhatIsFasterDoesNotDependOnTheName) {
  llvm::SmallVector<llvm::StringRef> features = {"avx512f", "avx512bw", "avx512vl", "avx512bf16"};
  EXPECT_FALSE(CpuTarget::x86("rocketlake", features).readings.half.asksAhead);
  features.push_back("avx512fp16");
  EXPECT_TRUE(CpuTarget::x86("rocketlake", features).readings.half.asksAhead);
  EXPECT_EQ(CpuTarget::x86("rocketlake", features).lanes, 16);
}

/// Whatever the processor: where it has no tiles, nothing is to be refused.
TEST(CpuTarget, ThereAreNoTilesWhereTheyAreRefused) {
  int status = test::withoutTiles([] { return !CpuTarget::host().tiles; });
  if (status == test::hadTiles)
    GTEST_SKIP() << "this process already has the tile registers";
  EXPECT_EQ(status, 0);
}

TEST(CpuTarget, TilesOfThisProcessAreSwitchedOff) {
  CpuTarget host = CpuTarget::host();
  {
    test::TilesOff off;
    EXPECT_FALSE(CpuTarget::host().tiles);
    EXPECT_EQ(CpuTarget::host().bfloatPairs, host.bfloatPairs);
  }
  EXPECT_EQ(CpuTarget::host().tiles, host.tiles);
}

TEST(CpuTarget, TilesAreNeededWhereTheyAreUsed) {
  CpuTarget target = named("sapphirerapids"), without = target.withoutTiles();
  EXPECT_TRUE(target.tiles);
  EXPECT_TRUE(llvm::is_contained(target.needed, "amx-tile"));
  EXPECT_TRUE(llvm::is_contained(target.needed, "amx-bf16"));
  EXPECT_FALSE(without.tiles);
  EXPECT_TRUE(without.bfloatPairs);
  EXPECT_EQ(without.needed.size() + 2, target.needed.size());
  EXPECT_FALSE(llvm::is_contained(without.needed, "amx-tile"));
  EXPECT_NE(without.features.find("-amx-tile"), std::string::npos);
  EXPECT_EQ(without.features.find("+amx"), std::string::npos);
  EXPECT_FALSE(named("cooperlake").tiles);
  EXPECT_FALSE(named("znver5").tiles);
}

} // namespace
