// Calls Executor::patchEach and keeps every patch, and compares these with those of each token
// alone.
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

inline std::vector<int64_t> before(Ids kept, int64_t position) {
  return kept.take_while([&](int64_t k) { return k < position; }).vec();
}

inline void expectBitEqual(const Patch &found, const Patch &expected, const std::string &what) {
  ASSERT_EQ(found.parameters.size(), expected.parameters.size()) << what;
  for (auto [a, b] : llvm::zip(found.parameters, expected.parameters)) {
    EXPECT_EQ(a.parameter, b.parameter) << what;
    EXPECT_EQ(a.kind, b.kind) << what;
    EXPECT_EQ(a.shape, b.shape) << what;
    EXPECT_TRUE(a.u == b.u && a.v == b.v && a.delta == b.delta)
        << what << ", " << a.parameter << ": u by " << largestDifference(a.u, b.u) << ", v by "
        << largestDifference(a.v, b.v) << ", delta by " << largestDifference(a.delta, b.delta);
  }
}

/// Compares with `patch` for each token alone after the same context.
inline void expectOneByOne(Executor &executor, Ids tokens, Ids kept,
                           const PatchEachOptions &options) {
  std::vector<Given> all = patchAll(executor, tokens, kept, 1, options);
  auto full = runOf(executor, tokens, 0, tokens.size());
  for (const Given &given : all) {
    int64_t at = given.token.position;
    std::string what = "position " + std::to_string(at);
    EXPECT_EQ(given.token.token, tokens[at]);
    auto reduced = runOf(executor, tokens, before(kept, at), 1);
    PatchOptions one;
    one.startLayer = options.startLayer;
    auto step = executor.patch(*full, *reduced, tokens[at], at, one);
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    expectBitEqual(given.patch, step->patch, what);
    ASSERT_EQ(given.token.obligations.size(), step->obligations.size());
    for (auto [a, b] : llvm::zip(given.token.obligations, step->obligations)) {
      EXPECT_EQ(a.harmful, b.harmful) << what;
      EXPECT_EQ(a.harmless, b.harmless) << what;
    }
    EXPECT_EQ(given.token.replayError, step->replayError) << what;
    if (options.logits) {
      EXPECT_EQ(given.token.fullLogits, step->fullLogits) << what;
      EXPECT_EQ(given.token.reducedLogits, step->reducedLogits) << what;
    }
  }
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PATCHALL_H
