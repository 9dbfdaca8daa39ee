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

/// How ranks share one dimension of a tensor. The dimension consists of pieces, and each rank has a
/// part of every piece: a matrix of queries, keys and values has three pieces, so that a rank has
/// some heads of each. Where a piece cannot be shared evenly, the first ranks have one entry more,
/// or one unit, where a piece consists of these.
struct Cut {
  int64_t before = 1, behind = 1;       ///< sizes of all dimensions before it, and after it
  llvm::SmallVector<int64_t, 2> pieces; ///< their sizes, whose sum is the dimension's
  int64_t ranks = 1;
  int64_t units = 0; ///< in each piece; 0: each entry is one

  /// Where rank `rank`'s part of a piece begins.
  int64_t beginOf(int64_t piece, int64_t rank) const {
    const int64_t each = units ? piece / units : 1;
    return beginOfPart(units ? units : piece, rank, ranks) * each;
  }
  /// How many entries the tensor has, and how many a rank's part has.
  int64_t wholeSize() const;
  int64_t partSize(int64_t rank) const;
  /// The dimension's size on a rank.
  int64_t extent(int64_t rank) const { return partSize(rank) / (before * behind); }

  /// A range of entries: where it begins in the tensor and in a rank's part, and its length.
  using Visit = llvm::function_ref<void(int64_t inWhole, int64_t inPart, int64_t count)>;
  /// Calls `visit` for each range of entries that is contiguous in both.
  void visitRuns(int64_t rank, Visit visit) const;

  bool operator==(const Cut &other) const {
    return before == other.before && behind == other.behind && pieces == other.pieces &&
           ranks == other.ranks && units == other.units;
  }
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_CUT_H
