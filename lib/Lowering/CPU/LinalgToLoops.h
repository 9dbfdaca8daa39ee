// Loops of linalg ops on memrefs.
#ifndef CTXC_LIB_LOWERING_LINALGTOLOOPS_H
#define CTXC_LIB_LOWERING_LINALGTOLOOPS_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// Loops that compute `op`, which stays, at the builder's place: the outermost, null where there is
/// none.
mlir::FailureOr<mlir::scf::ForOp> linalgToLoops(mlir::RewriterBase &rewriter,
                                                mlir::linalg::LinalgOp op, const CpuTarget &target);

/// Whether `loop` is a plain one of those. What a linalg op reads at other places than it writes is
/// other memory.
bool isOfLinalg(mlir::scf::ForOp loop);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_LINALGTOLOOPS_H
