#include "ctxc/Support/Memory.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <fstream>
#include <string>

using namespace ctxc;

namespace {

#ifdef __linux__
/// How many kilobytes of LLVM's library are in memory and read-only.
long residentOfLlvm() {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool counts = false;
  long sum = 0;
  while (std::getline(maps, line)) {
    size_t space = line.find(' ');
    if (line.find('-') < space) // a mapping: addresses, then permissions
      counts = line.find("libLLVM") != std::string::npos && line[space + 2] != 'w';
    else if (counts && line.rfind("Rss:", 0) == 0)
      sum += std::stol(line.substr(4));
  }
  return sum;
}

TEST(Memory, OfLibrariesIsGivenBackAndComesAgain) {
  std::string text = llvm::formatv("{0}", 1.5);
  long before = residentOfLlvm();
  if (before == 0)
    GTEST_SKIP() << "LLVM is not a shared library here";
  giveBackMemory();
  EXPECT_LT(residentOfLlvm(), before / 2);
  EXPECT_EQ(llvm::formatv("{0}", 1.5).str(), text);
}
#endif

} // namespace
