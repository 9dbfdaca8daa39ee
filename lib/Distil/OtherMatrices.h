// The matrices that the closed form does not fit.
#ifndef CTXC_LIB_DISTIL_OTHERMATRICES_H
#define CTXC_LIB_DISTIL_OTHERMATRICES_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

/// Changes of rank `rank` that change nothing yet, of every stored matrix that multiplies values
/// between the first site and the head and is no site: of each, one factor is zero and the other
/// random, as a change of low rank begins that is found by gradients.
std::vector<MatrixChange> changesOfOthers(const SplitModel &model, int64_t rank);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_OTHERMATRICES_H
