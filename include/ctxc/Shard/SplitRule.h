//===- SplitRule.h - along which indices an op can be cut ------------------===//
//
// Written like a sum over indices: a linear is y_i = Σ_j W_ij x_j, with i in W and y, and j, over
// which is summed, in W and x. Ranks that each have a part of the values of one index compute a
// part of the result, or, where it is summed over, a term of the whole result.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_SPLITRULE_H
#define CTXC_SHARD_SPLITRULE_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace ctxc::shard {

/// What an op does with an operand that is, so far, a term of a sum over ranks.
enum class SumUse {
  Finish, ///< needs the sum
  Add,    ///< the result is such a term, too; whole operands are added by one rank
  Scale,  ///< the result is such a term where the other operands are whole
};

struct SplitRule {
  /// For each operand and each result the index of each dimension; −1 where it cannot be cut.
  llvm::SmallVector<llvm::SmallVector<int, 3>, 4> operands, results;
  /// The index over which is summed; −1: none.
  int summed = -1;
  /// The index of which operands and results have stretches alone, and where each begins: of what
  /// is cut into slices, or put together of values. −1: none.
  int stretched = -1;
  llvm::SmallVector<int64_t, 4> operandsFrom, resultsFrom;
  SumUse sums = SumUse::Finish;
  /// The operand that is added to the sum over `summed`: cut along that index, the op takes it as a
  /// term, and is not cut so where it is none. −1: there is none.
  int addend = -1;
  /// Which share of its parameter a token reads: all of a matrix, one row of a table.
  double share = 1;
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_SPLITRULE_H
