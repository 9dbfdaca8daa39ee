// Calls Executor::patchEach and keeps every patch.
#ifndef CTXC_TEST_UNIT_PATCHALL_H
#define CTXC_TEST_UNIT_PATCHALL_H

#include "test/unit/Compiled/Fixture.h"

namespace ctxc::test {

/// What the sink receives for a token.
struct Given {
  TokenPatch token;
  Patch patch;
};

using Ids = llvm::ArrayRef<int64_t>;

/// A run of the tokens at `positions`, with room for `more` tokens.
inline std::unique_ptr<ctxc::Run> runOf(Executor &executor, Ids tokens, Ids positions,
                                        int64_t more) {
  auto run = executor.start(positions.size() + more);
  std::vector<int64_t> ids;
  for (int64_t position : positions)
    ids.push_back(tokens[position]);
  if (!ids.empty()) {
    auto logits = executor.forward(*run, ids, positions, {});
    EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  }
  return run;
}

/// The patches of all tokens from `first` on, each at its index; the tokens at `kept` are kept.
inline std::vector<Given> patchAll(Executor &executor, Ids tokens, Ids kept, int64_t first,
                                   const PatchEachOptions &options = {}) {
  auto full = runOf(executor, tokens, upTo(first), tokens.size() - first);
  auto reduced = runOf(executor, tokens, kept, 1);
  std::vector<Given> all;
  auto positions = upTo(tokens.size());
  llvm::Error error = executor.patchEach(*full, *reduced, tokens.drop_front(first),
                                         Ids(positions).drop_front(first), options,
                                         [&](const TokenPatch &token) -> llvm::Error {
                                           auto patch = token.patch();
                                           if (!patch)
                                             return patch.takeError();
                                           all.push_back({token, std::move(*patch)});
                                           return llvm::Error::success();
                                         });
  EXPECT_EQ(llvm::toString(std::move(error)), "");
  EXPECT_EQ(full->size(), int64_t(tokens.size()));
  EXPECT_EQ(reduced->size(), int64_t(kept.size()));
  EXPECT_EQ(all.size(), tokens.size() - first);
  return all;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PATCHALL_H
