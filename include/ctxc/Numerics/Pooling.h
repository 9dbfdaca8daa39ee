//===- Pooling.h - one vector of a text from those of its tokens -----------===//
#ifndef CTXC_NUMERICS_POOLING_H
#define CTXC_NUMERICS_POOLING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <vector>

namespace ctxc {

/// The ways in which sentence-transformers pools, in the order in which it joins their vectors.
enum class PoolingKind {
  First,        ///< the first token's vector
  Largest,      ///< of each number the largest
  Mean,         ///< the sum, divided by the number of tokens
  MeanOfRoot,   ///< the sum, divided by its root
  WeightedMean, ///< token i, from 1 on, counts i times
  Last          ///< the last token's vector
};

struct Pooling {
  llvm::SmallVector<PoolingKind, 1> kinds;
  bool normalize = false; ///< to length 1
};

/// "the mean, scaled to length 1".
std::string describe(const Pooling &pooling);

/// The vector of a text whose tokens have the rows, each of `width` numbers.
std::vector<double> pool(const Pooling &pooling, llvm::ArrayRef<double> rows, int64_t width);

} // namespace ctxc

#endif // CTXC_NUMERICS_POOLING_H
