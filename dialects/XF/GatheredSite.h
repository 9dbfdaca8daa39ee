//===- GatheredSite.h - rows of a stored matrix as what a patch changes ----===//
#ifndef CTXC_DIALECTS_XF_GATHEREDSITE_H
#define CTXC_DIALECTS_XF_GATHEREDSITE_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// What a patch of `site` starts from, which is as in the full run where nothing inside differs:
/// all that the op reads but its parameter. An op that reads indices alone, as the biases of
/// selected experts, stands for what it is added to.
llvm::SmallVector<mlir::Value> valuesBefore(AssignableOpInterface site);

/// Gives xf.gather its model of AssignableOpInterface.
void attachGatherModels(mlir::MLIRContext &context);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_GATHEREDSITE_H
