// How matrices are read, as text and in the user's cache.
#include "ctxc/Lowering/ReadingsCache.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<Readings> readings = Readings::parse(text);
  return readings ? "" : llvm::toString(readings.takeError());
}

TEST(Readings, AreReadAsTheyAreWritten) {
  Readings readings;
  EXPECT_EQ(readings.text(),
            "f32:2,half:2,blocks:2,k-blocks:2,long-f32:8+,long-half:8+,long-from:9216");
  EXPECT_EQ(Readings::ahead().text(),
            "f32:2,half:1+,blocks:4+,k-blocks:2+,long-f32:4+,long-half:8+,long-from:9216");
  EXPECT_EQ(Readings::ofSixteenLanes().text(),
            "f32:4,half:4,blocks:4,k-blocks:4,long-f32:8+,long-half:4+,long-from:16384");
  EXPECT_EQ(Readings::ofEightLanes().text(),
            "f32:4,half:4,blocks:4,k-blocks:4,long-f32:8,long-half:8,long-from:9216");
  readings.f32 = {4, true};
  readings.longHalf = {1, false};
  readings.longFrom = 1024;
  EXPECT_EQ(llvm::cantFail(Readings::parse(readings.text())), readings);
  EXPECT_NE(llvm::cantFail(Readings::parse(readings.text())), Readings());
}

TEST(Readings, AreByDefaultWhatTheTextLeavesOut) {
  EXPECT_EQ(llvm::cantFail(Readings::parse("")), Readings());
  EXPECT_EQ(llvm::cantFail(Readings::parse("half:4")).text(),
            "f32:2,half:4,blocks:2,k-blocks:2,long-f32:8+,long-half:8+,long-from:9216");
}

TEST(Readings, OthersAreErrors) {
  EXPECT_EQ(errorOf("f64:2"),
            "found 'f64', expected f32, half, blocks, k-blocks, long-f32, long-half, long-from");
  for (llvm::StringRef number : {"3", "16", "", "x", "-2"})
    EXPECT_EQ(
        errorOf(("f32:" + number).str()),
        ("f32: found '" + number +
         "', expected 1, 2, 4 or 8 streams, and a + behind it where lines are asked for ahead")
            .str());
  for (llvm::StringRef number : {"0", "", "x", "-2"})
    EXPECT_EQ(errorOf(("long-from:" + number).str()),
              ("long-from: found '" + number + "', expected a positive number of bytes").str());
}

TEST(ReadingsCache, HasThemForAProcessorAndANumberOfThreads) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ctxc-readings", folder));
  const ReadingsCache cache((folder + "/readings").str());
  CpuTarget one, other;
  one.cpu = "sapphirerapids";
  other.cpu = "znver4";
  Readings readings;
  readings.f32 = {4, true};
  cache.insert(one, 2, readings);
  EXPECT_EQ(cache.find(one, 2), readings);
  EXPECT_EQ(cache.find(one, 1), std::nullopt);
  EXPECT_EQ(cache.find(other, 2), std::nullopt);
  cache.insert(one, 2, Readings());
  EXPECT_EQ(cache.find(one, 2), Readings());
  EXPECT_FALSE(ReadingsCache("").isOn());
  EXPECT_EQ(ReadingsCache("").find(one, 2), std::nullopt);
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
