//===- Rotation.h - how a chain is solved through a rotation ---------------===//
#ifndef CTXC_DIALECTS_XF_ROTATION_H
#define CTXC_DIALECTS_XF_ROTATION_H

#include "dialects/XF/XF.h"

namespace ctxc::xf {

/// Gives xf.rotary its model of SolvableOpInterface.
void attachRotationModels(mlir::MLIRContext &context);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_ROTATION_H
