//===- FullRun.h - one full run for many prompts ----------------------------===//
#ifndef CTXC_LIB_BATCH_FULLRUN_H
#define CTXC_LIB_BATCH_FULLRUN_H

#include "ctxc/Program/Executor.h"

namespace ctxc::batch {

/// Holds what the prompts before have left: the tree of all prompts' beginnings, one path of it at
/// a time. Prompts that come in the order of their tokens walk through that tree from branch to
/// branch, so that each token of it is read once.
class FullRun {
public:
  explicit FullRun(Executor &executor) : executor(executor) {}

  /// Makes the run hold the beginning that it has in common with `tokens`, and nothing from
  /// position `first` on, with room for `count` tokens. Returns how many it holds.
  llvm::Expected<int64_t> prepare(llvm::ArrayRef<Input> tokens, int64_t first, int64_t count) {
    auto common = std::mismatch(held.begin(), held.end(), tokens.begin(), tokens.end()).first;
    held.erase(held.begin() + std::min<int64_t>(common - held.begin(), first), held.end());
    if (run)
      run->truncate(held.size());
    if (count <= capacity)
      return held.size();
    int64_t room = std::max<int64_t>(64, count + count / 2);
    if (!run) {
      run = executor.start(room);
    } else {
      llvm::Expected<std::unique_ptr<Run>> larger = executor.copy(*run, room);
      if (!larger)
        return larger.takeError();
      run = std::move(*larger);
    }
    capacity = room;
    return held.size();
  }

  Run &state() const { return *run; }

  /// What the run has been given since.
  void holds(llvm::ArrayRef<Input> tokens) { held.assign(tokens.begin(), tokens.end()); }
  /// The same where a call failed, and nobody knows how far it went.
  void forget() { held.clear(); }

private:
  Executor &executor;
  std::unique_ptr<Run> run;
  std::vector<Input> held;
  int64_t capacity = 0;
};

} // namespace ctxc::batch

#endif // CTXC_LIB_BATCH_FULLRUN_H
