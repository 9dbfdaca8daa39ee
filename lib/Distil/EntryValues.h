// The values of all heads of an attention together. docs/distil-method.md has the formulas.
#ifndef CTXC_LIB_DISTIL_ENTRYVALUES_H
#define CTXC_LIB_DISTIL_ENTRYVALUES_H

#include "Regression.h"

namespace ctxc {

/// What N tokens read of an attention's entries, and what the matrix behind it should write
/// besides.
struct ReadEntries {
  /// The softmax's weights of each head of keys: m × (N for each head of queries that reads it).
  std::vector<FloatMatrix> weights;
  FloatMatrix output;  ///< the matrix: D × (e for each head of queries)
  FloatMatrix missing; ///< of what it writes: N × D
};

/// Changes of the values of each head of keys, m × e, with which the matrix writes what is missing
/// as nearly as it can: by least squares over all tokens, with a ridge penalty.
std::vector<Matrix> fitValues(const ReadEntries &read, const ParallelFor &threads);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ENTRYVALUES_H
