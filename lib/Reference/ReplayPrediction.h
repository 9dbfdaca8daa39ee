#ifndef CTXC_LIB_REFERENCE_REPLAYPREDICTION_H
#define CTXC_LIB_REFERENCE_REPLAYPREDICTION_H

#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

/// The predicted replay error, in float32, of the output of a dual block that
/// `evaluation` has evaluated for one token: the 2-norm of the error at the
/// output site, which is stored last (ReplayError.h).
double predictReplayError(xf::BlockOp dual, const Evaluation &evaluation);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_REPLAYPREDICTION_H
