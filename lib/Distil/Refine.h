// Behind the closed form: steps of gradient through the whole model.
#ifndef CTXC_LIB_DISTIL_REFINE_H
#define CTXC_LIB_DISTIL_REFINE_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

/// Makes `request.fit.passes` passes of Adam over the adapter's numbers (factors and scales, or
/// virtual entries), on the KL from the full run's predictions to the student's over the texts, and
/// from the plain model's over what is protected. docs/distil-method.md has the formulas. Errors: a
/// model without a head; an op without a gradient; numbers that are not finite.
llvm::Error refine(SplitModel model, const DistilRequest &request, Distilled &distilled);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_REFINE_H
