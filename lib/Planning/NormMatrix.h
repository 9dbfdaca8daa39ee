// What planning knows of norms: the matrix that is patched with a post-norm's
// scale, and which data comes from a pre-norm.
#ifndef CTXC_LIB_PLANNING_NORMMATRIX_H
#define CTXC_LIB_PLANNING_NORMMATRIX_H

#include "dialects/XF/XF.h"

namespace ctxc {

/// The matrix W of `(offset + m) ⊙ Norm_rms(W h)`, where `scale` is that scale and
/// nothing else reads what is in between; null where it is not of that form.
mlir::Operation *findNormMatrix(mlir::Operation *scale);

/// Whether `data` is what a norm gives, after its own scale and bias.
bool followsNorm(mlir::Value data);

} // namespace ctxc

#endif // CTXC_LIB_PLANNING_NORMMATRIX_H
