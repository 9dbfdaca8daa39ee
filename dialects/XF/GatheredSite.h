//===- GatheredSite.h - patches of selected rows of a stored matrix --------===//
#ifndef CTXC_DIALECTS_XF_GATHEREDSITE_H
#define CTXC_DIALECTS_XF_GATHEREDSITE_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// The values that a patch of `site` starts from, which equal the full run's if the inside of the
/// block does not differ: all operands of the op except its parameter. If the op reads only
/// indices, as for the biases of selected experts, they are the values to which its result is
/// added.
llvm::SmallVector<mlir::Value> valuesBefore(AssignableOpInterface site);

/// Gives xf.gather its model of AssignableOpInterface.
void attachGatherModels(mlir::MLIRContext &context);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_GATHEREDSITE_H
