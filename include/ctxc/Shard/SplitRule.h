//===- SplitRule.h - along which indices an op can be cut ------------------===//
//
// A rule is written like a sum over indices. A linear is y_i = Σ_j W_ij x_j: W and y have index i,
// and W and x have index j, over which it sums. Where each rank has a part of the values of i, it
// computes a part of the result; where each has a part of the values of j, it computes a term.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_SPLITRULE_H
#define CTXC_SHARD_SPLITRULE_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace ctxc::shard {

/// What an op can do with an operand of which each rank has a term.
enum class SumUse {
  Finish, ///< nothing: it needs the sum of the terms
  Add,    ///< its result is a term as well; only one rank adds the operands that are whole
  Scale,  ///< its result is a term as well, if the other operands are whole
};

struct SplitRule {
  /// For each operand and each result, the index of each dimension; −1: it cannot be cut.
  llvm::SmallVector<llvm::SmallVector<int, 3>, 4> operands, results;
  /// The index that the op sums over; −1: none.
  int summed = -1;
  /// The index of which each operand and result has only a range of values, and where the range of
  /// each begins: for ops that slice or concatenate. −1: none.
  int stretched = -1;
  llvm::SmallVector<int64_t, 4> operandsFrom, resultsFrom;
  SumUse sums = SumUse::Finish;
  /// The operand that is added to the sum over `summed`. The op can be cut along that index only
  /// where each rank has a term of this operand. −1: there is none.
  int addend = -1;
  /// The fraction of its parameter that a token reads: all of a matrix, one row of a table.
  double share = 1;
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_SPLITRULE_H
