#include "ctxc/Support/Memory.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <fstream>
#include <new>
#include <stdexcept>
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

static void catchesNothing(void (*call)()) noexcept { call(); }

/// However the lack is noticed: by new, by LLVM's containers, by a library that throws.
TEST(MemoryDeathTest, NoMemoryIsAMessage) {
  auto lack = testing::ExitedWithCode(2);
  const char *message = "^ctxc: error: there is not enough memory; ";
  EXPECT_EXIT((ctxc::installMemoryGuard(), std::get_new_handler()()), lack, message);
  EXPECT_EXIT((ctxc::installMemoryGuard(), llvm::report_bad_alloc_error("a buffer")), lack,
              message);
  EXPECT_EXIT((ctxc::installMemoryGuard(), catchesNothing([] { throw std::bad_alloc(); })), lack,
              message);
  // Other exceptions end as before.
  EXPECT_DEATH(
      (ctxc::installMemoryGuard(), catchesNothing([] { throw std::logic_error("other"); })),
      "other");
}
