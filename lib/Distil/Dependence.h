// How much what a token predicts depends on the context.
#ifndef CTXC_LIB_DISTIL_DEPENDENCE_H
#define CTXC_LIB_DISTIL_DEPENDENCE_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

/// For each token of the request's texts, one text after the other: 1 + a KL(full ‖ plain) with a =
/// `request.dependence`, relative to the mean over all tokens; empty where a is zero. The plain
/// model has the prefix in front. Errors: a model without a head; logits that are not finite.
llvm::Expected<std::vector<double>> weightsByDependence(SplitModel model,
                                                        const DistilRequest &request);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_DEPENDENCE_H
