// Diagnostics of passes that run too early in a pipeline.
#ifndef CTXC_LIB_LOWERING_ORDER_H
#define CTXC_LIB_LOWERING_ORDER_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Reports an error at the first linalg op on tensors: the pass with the argument `pass` needs
/// memrefs.
mlir::LogicalResult expectBuffers(mlir::ModuleOp module, llvm::StringRef pass);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ORDER_H
