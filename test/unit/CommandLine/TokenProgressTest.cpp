#include "tools/CommandLine/TokenProgress.h"
#include "gtest/gtest.h"

using namespace ctxc::driver;

namespace {

struct Terminal {
  std::string text;
  llvm::raw_string_ostream os{text};
  double now = 100;
  TokenProgress progress{os, [this] { return now; }};

  std::string after(double seconds, int64_t done, int64_t all) {
    text.clear();
    now += seconds;
    progress(done, all);
    return text;
  }
};

TEST(TokenProgress, IsALineThatIsErased) {
  Terminal terminal;
  EXPECT_EQ(terminal.after(0, 0, 5000), "");
  EXPECT_EQ(terminal.after(1.5, 1000, 5000), "");
  EXPECT_EQ(terminal.after(0.5, 2000, 5000),
            "\x1b[K2000 of 5000 tokens, 1000 tokens/s, 3 s left\r");
  EXPECT_EQ(terminal.after(2, 4000, 5000), "\x1b[K4000 of 5000 tokens, 1000 tokens/s, 1 s left\r");
  EXPECT_EQ(terminal.after(1, 5000, 5000), "\x1b[K");
}

TEST(TokenProgress, OfAShortCallIsSilent) {
  Terminal terminal;
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(terminal.after(5, 0, 10), "");
    EXPECT_EQ(terminal.after(1, 5, 10), "");
    EXPECT_EQ(terminal.after(0.9, 10, 10), "");
  }
}

} // namespace
