// The two products of attention, as loops over tiles that registers hold.
#ifndef CTXC_LIB_LOWERING_ATTENTIONLOOPS_H
#define CTXC_LIB_LOWERING_ATTENTIONLOOPS_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ctxc {

/// On an op of those below, or one of softmax's, whose first loop is over S rows and whose last
/// over slots: the rows are the last S slots, in order, and see none behind their own, so that what
/// comes of those need not be computed, and is not read.
constexpr llvm::StringLiteral kCausalAttr = "ctxc.causal";

/// On an op whose scores are stored, and not added to what is there.
constexpr llvm::StringLiteral kStoredAttr = "ctxc.stored";

/// On the loops over the second dimension, within that over rows.
constexpr llvm::StringLiteral kSecondLoopAttr = "ctxc.second";

/// How many of the slots row `row` of `rows` sees then (index).
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
