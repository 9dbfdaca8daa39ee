// The gates dialect in C++.
#ifndef GATES_H
#define GATES_H

#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Reference/Evaluation.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"

#include "GatesDialect.h.inc"

#define GET_OP_CLASSES
#include "GatesOps.h.inc"

namespace gates {

/// Gives an op of MLIR's own, math.sin, the interfaces that it needs in a block.
void registerSinModels(mlir::DialectRegistry &registry);

} // namespace gates

#endif // GATES_H
