//===- TokenProgress.h - how far a long call is ----------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_TOKENPROGRESS_H
#define CTXC_TOOLS_COMMANDLINE_TOKENPROGRESS_H

#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace ctxc::driver {

/// Writes how far a call is to a terminal, in one line that is written over and at last erased:
///
///     4096 of 32768 tokens, 812 tokens/s, 35 s left
///
/// Nothing is written in a call's first two seconds.
class TokenProgress {
public:
  /// `seconds` is a clock, `unit` what is counted.
  TokenProgress(llvm::raw_ostream &terminal, std::function<double()> seconds,
                llvm::StringRef unit = "tokens")
      : terminal(terminal), seconds(std::move(seconds)), unit(unit) {}

  /// Takes what Executor::setProgress gives.
  void operator()(int64_t done, int64_t all);

private:
  llvm::raw_ostream &terminal;
  std::function<double()> seconds;
  llvm::StringRef unit;
  double begin = 0;
  bool isShown = false;
};

/// Progress on standard error, where that is a terminal; otherwise an empty function.
std::function<void(int64_t done, int64_t all)> progressOnTerminal(llvm::StringRef unit = "tokens");

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_TOKENPROGRESS_H
