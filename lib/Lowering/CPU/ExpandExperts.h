// Selected experts of a mixture as contractions, one for each row and slot.
#ifndef CTXC_LIB_LOWERING_EXPANDEXPERTS_H
#define CTXC_LIB_LOWERING_EXPANDEXPERTS_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Replaces every kernel.experts by a loop over rows and slots, around a contraction with the
/// matrix whose address the selection gives.
void expandExperts(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_EXPANDEXPERTS_H
