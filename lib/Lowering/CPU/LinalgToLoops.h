// Lowers linalg ops on memrefs to loops.
#ifndef CTXC_LIB_LOWERING_LINALGTOLOOPS_H
#define CTXC_LIB_LOWERING_LINALGTOLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Emits loops that compute `op` at the insertion point, and returns the outermost one, or null
/// where there is none. `op` itself stays.
mlir::FailureOr<mlir::scf::ForOp> linalgToLoops(mlir::RewriterBase &rewriter,
                                                mlir::linalg::LinalgOp op);

/// Whether `loop` is a scalar loop made from a linalg op. Memory that a linalg op reads at other
/// indices than it writes does not overlap the memory that it writes.
bool isOfLinalg(mlir::scf::ForOp loop);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_LINALGTOLOOPS_H
