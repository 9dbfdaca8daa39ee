// The two products of attention, as loops over tiles that registers hold.
#ifndef CTXC_LIB_LOWERING_ATTENTIONLOOPS_H
#define CTXC_LIB_LOWERING_ATTENTIONLOOPS_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// How many of the slots row `row` of `rows` sees in a causal op (index).
mlir::Value seenSlots(mlir::OpBuilder &b, mlir::Location loc, mlir::Value row, mlir::Value rows,
                      mlir::Value slots);

/// Whether `op` is scores[s, g, r, t] += Σ_d query[s, g, r, d] key[t, g, d], on memrefs.
bool isScores(mlir::linalg::LinalgOp op);

/// Loops that compute `op`, on memrefs, at the builder's place; the outermost, over rows, is
/// returned. Null where `op` is neither scores nor
///   mixed[s, g, r, x] += Σ_t weight[s, g, r, t] value[t, g, x].
mlir::scf::ForOp attentionToLoops(mlir::OpBuilder &b, mlir::linalg::LinalgOp op,
                                  const CpuTarget &target);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ATTENTIONLOOPS_H
