// The least change of one matrix that is exact for all rows.
#ifndef CTXC_LIB_DISTIL_JOINTFIT_H
#define CTXC_LIB_DISTIL_JOINTFIT_H

#include "Regression.h"

namespace ctxc {

/// What is known of a site, a row for each token.
struct JointRows {
  FloatMatrix data; ///< z: N × inputs
  Matrix missing;   ///< what the product lacks: N × outputs
  double scale = 0; ///< the length of a product, to which what is missing is compared
};

/// ΔW = left right, in the orientation (outputs, inputs); the rows of `right` are orthonormal.
struct JointFit {
  Matrix left;             ///< outputs × rank
  Matrix right;            ///< rank × inputs
  double independence = 1; ///< JointSite::independence
  /// Two rows whose data are dependent, and of which different things are missing.
  std::optional<std::pair<int64_t, int64_t>> conflict;
};

/// By Householder's QR in float64. A row that depends on those before it, and that they already
/// serve, adds no rank; neither does one of which nothing is missing.
JointFit fitJointly(const JointRows &rows);

/// The singular values of ΔW, descending.
std::vector<double> spectrumOf(const JointFit &fit);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_JOINTFIT_H
