// The values of all heads of an attention together. docs/distil-method.md has the formulas.
#ifndef CTXC_LIB_DISTIL_ENTRYVALUES_H
#define CTXC_LIB_DISTIL_ENTRYVALUES_H

#include "Regression.h"

namespace ctxc {

/// What N tokens read of an attention's entries, and the matrix behind it.
struct ReadEntries {
  /// The softmax's weights of all heads of queries, one below the other: (H m) × N. A head of keys
  /// is read by as many of them, one after the other.
  FloatMatrix weights;
  const FloatMatrix &output;  ///< the matrix, D × (H e)
  const FloatMatrix &metric;  ///< its Gram matrix, (H e) × (H e)
  const FloatMatrix &missing; ///< of what it writes: D × N
  int64_t heads, groups;      ///< H; heads of keys
};

struct ValuesFit {
  std::vector<Matrix> changes; ///< of each head of keys, m × e
  double gain;                 ///< by how much the square of what is missing is less with them
};

/// The changes with which the matrix writes what is missing as nearly as it can: by least squares
/// over all tokens, with a ridge penalty.
ValuesFit fitValues(const ReadEntries &read, const ParallelFor &threads);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ENTRYVALUES_H
