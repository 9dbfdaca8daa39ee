// Seeds of random tests, which are divided among shards.
#ifndef CTXC_TEST_UNIT_PROPERTY_SEEDS_H
#define CTXC_TEST_UNIT_PROPERTY_SEEDS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>

namespace ctxc::test {

/// The seeds of one of `shards`: `each` of them, from `first` on over all shards. They are replaced
/// by CTXC_PROPERTY_SEEDS=FIRST:COUNT.
struct Seeds {
  int shard;
  uint64_t shards, each, first = 0;
};

/// Lets a new judge judge each seed by `judging`. Prints what it counted of the `kind`, and expects
/// that it met each of `met` where it judged `enough` seeds: a generator that makes only one kind
/// of blocks would prove nothing.
template <typename Judge>
void judgeSeeds(llvm::StringRef kind, Seeds seeds, void (*judging)(Judge &, uint64_t),
                uint64_t enough, std::initializer_list<const char *> met) {
  uint64_t first = seeds.first, count = seeds.each * seeds.shards;
  if (const char *text = std::getenv("CTXC_PROPERTY_SEEDS")) {
    auto [from, size] = llvm::StringRef(text).split(':');
    ASSERT_FALSE(from.getAsInteger(10, first) || size.getAsInteger(10, count)) << text;
  }
  first += seeds.shard * count / seeds.shards;
  count /= seeds.shards;
  Judge judge;
  for (uint64_t seed = first; seed < first + count; ++seed)
    judging(judge, seed);
  llvm::outs() << kind << " " << first << " to " << first + count - 1 << ":\n";
  judge.print(llvm::outs());
  if (count >= enough)
    for (const char *one : met)
      EXPECT_TRUE(judge.counts.count(one)) << one;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_SEEDS_H
