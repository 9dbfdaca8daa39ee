//===- FixedMatrix.h - settings whose numbers are a part of the block -------===//
#ifndef CTXC_DIALECTS_XF_FIXEDMATRIX_H
#define CTXC_DIALECTS_XF_FIXEDMATRIX_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// What the numbers of a matrix say.
struct MatrixFacts {
  int64_t rows = 0, columns = 0;
  /// None where roundings decide, or where it takes too long to say.
  std::optional<int64_t> rank;
  bool anyZeroRow = false;
  double largestRowSum = 0; ///< of absolute values
  bool isInvertible() const { return rank == rows && rows == columns; }
};

/// Of `op`'s matrix, as it multiplies; none where `weight`, its facts, have no numbers.
std::optional<MatrixFacts> matrixFacts(LinearOp op, const Facts &weight);

/// The numbers of `setting`, where its block says them and no layer gives others.
std::optional<std::vector<double>> ownNumbers(SettingOp setting);

/// The inverse of `op`'s matrix, row-major, as it multiplies; none where its numbers are not the
/// block's own, or where it has no inverse that float32 can hold.
std::optional<std::vector<double>> inverseOf(LinearOp op);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FIXEDMATRIX_H
