// The entries of all heads of an attention together. docs/distil-method.md has the formulas.
#ifndef CTXC_LIB_DISTIL_ENTRYHEADS_H
#define CTXC_LIB_DISTIL_ENTRYHEADS_H

#include "EntryFit.h"

namespace ctxc {

/// The matrix behind an attention, and what it should write for N tokens besides what it does.
struct MatrixBehind {
  FloatMatrix output;            ///< D × (e for each head of queries)
  FloatMatrix missing;           ///< N × D
  Eigen::RowVectorXf tokenSizes; ///< by which each token's results are multiplied before: N
};

/// Moves keys and values of all heads so that the matrix writes what is missing as nearly as it
/// can.
void fitTogether(std::vector<EntryFit> &heads, const MatrixBehind &matrix,
                 const ParallelFor &threads);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ENTRYHEADS_H
