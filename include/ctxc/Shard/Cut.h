//===- Cut.h - the part of a tensor that a rank has -----------------------===//
#ifndef CTXC_SHARD_CUT_H
#define CTXC_SHARD_CUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace ctxc::shard {

/// Where rank `rank`'s part of a piece begins; its end is where the next rank's begins.
inline int64_t beginOfPart(int64_t piece, int64_t rank, int64_t ranks) {
  return piece / ranks * rank + (rank < piece % ranks ? rank : piece % ranks);
}

/// One dimension of a tensor that ranks share: each has a part of every piece of it, in the pieces'
/// order. A matrix of queries, keys and values has three pieces, so that a rank has some heads of
/// each. Of a piece that they cannot share evenly the first ranks have an entry more.
struct Cut {
  int64_t before = 1, behind = 1;       ///< the entries of the dimensions before and behind it
  llvm::SmallVector<int64_t, 2> pieces; ///< which make up the dimension
  int64_t ranks = 1;

  /// The tensor's entries, and those of a rank's part.
  int64_t wholeSize() const;
  int64_t partSize(int64_t rank) const;
  /// The dimension's size on a rank.
  int64_t extent(int64_t rank) const { return partSize(rank) / (before * behind); }

  /// Where a run of entries begins in the tensor and in a rank's part, and how many they are.
  using Visit = llvm::function_ref<void(int64_t inWhole, int64_t inPart, int64_t count)>;
  /// Calls `visit` for each run of entries that follow each other in both.
  void visitRuns(int64_t rank, Visit visit) const;

  bool operator==(const Cut &other) const {
    return before == other.before && behind == other.behind && pieces == other.pieces &&
           ranks == other.ranks;
  }
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_CUT_H
