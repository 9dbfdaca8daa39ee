#include "tools/CommandLine/TokenProgress.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <unistd.h>

using namespace ctxc::driver;

static constexpr double silentSeconds = 2;

/// What a terminal does: erase the line from here on.
static constexpr llvm::StringLiteral erase = "\x1b[K";

void TokenProgress::operator()(int64_t done, int64_t all) {
  double now = seconds();
  if (done == 0) {
    begin = now;
    return;
  }
  if (done == all) {
    if (isShown)
      terminal << erase;
    isShown = false;
  } else if (now - begin >= silentSeconds) {
    // The cursor goes back to where the line begins, for whatever is written next.
    double rate = double(done) / (now - begin);
    terminal << erase
             << llvm::formatv("{0} of {1} {4}, {2:F0} {4}/s, {3:F0} s left\r", done, all, rate,
                              double(all - done) / rate, unit);
    isShown = true;
  }
  terminal.flush();
}

std::function<void(int64_t, int64_t)> ctxc::driver::progressOnTerminal(llvm::StringRef unit) {
  if (!::isatty(STDERR_FILENO))
    return {};
  using Clock = std::chrono::steady_clock;
  // Streams.h writes control characters out; this line is made of them.
  return TokenProgress(
      llvm::errs(),
      [begin = Clock::now()] {
        return std::chrono::duration<double>(Clock::now() - begin).count();
      },
      unit);
}
