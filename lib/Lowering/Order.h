// What passes need of those before them, as diagnostics.
#ifndef CTXC_LIB_LOWERING_ORDER_H
#define CTXC_LIB_LOWERING_ORDER_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// An error at the first linalg op on tensors: `pass`, by its argument, needs memrefs.
mlir::LogicalResult expectBuffers(mlir::ModuleOp module, llvm::StringRef pass);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ORDER_H
