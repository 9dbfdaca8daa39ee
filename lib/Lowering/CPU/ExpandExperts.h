// The selected experts of a mixture, one contraction for each row and slot.
#ifndef CTXC_LIB_LOWERING_EXPANDEXPERTS_H
#define CTXC_LIB_LOWERING_EXPANDEXPERTS_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Puts a loop over rows and slots in the place of every kernel.experts, around the contraction
/// with the matrix at the address that the selection names.
void expandExperts(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_EXPANDEXPERTS_H
