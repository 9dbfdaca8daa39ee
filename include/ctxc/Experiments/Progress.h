//===- Progress.h - shows an experiment's progress ------------------------===//
//
// On a terminal it draws a bar with the remaining time, in place; elsewhere (in a log) it writes a
// line for every tenth.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPERIMENTS_PROGRESS_H
#define CTXC_EXPERIMENTS_PROGRESS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace ctxc::experiments {

class Progress {
public:
  /// `terminal`: whether `os` is one.
  Progress(llvm::raw_ostream &os, bool terminal) : os(os), terminal(terminal) {}

  /// `count` more units are to be done, usually tokens; before the first `advance`.
  void expect(int64_t count) { expected += count; }
  /// Sets the label of the work that follows.
  void begin(const llvm::Twine &what);
  /// `count` units are done; `skipped`: without work, because they existed already.
  void advance(int64_t count = 1, bool skipped = false);
  /// Ends the line. No more units come.
  void finish();

private:
  void draw();
  using Clock = std::chrono::steady_clock;
  llvm::raw_ostream &os;
  bool terminal, drawn = false;
  std::string label;
  int64_t expected = 0, done = 0, worked = 0, tenths = 0;
  Clock::time_point start = Clock::now(), last;
};

} // namespace ctxc::experiments

#endif // CTXC_EXPERIMENTS_PROGRESS_H
