// The code of y[s, m] = Σ_k W[m, k] x[s, k] for a matrix that is stored as (out, in), in numbers or
// quantised. Contraction.h tells how it is read, and the order of its sums.
#ifndef CTXC_LIB_LOWERING_CPU_ROWCONTRACTION_H
#define CTXC_LIB_LOWERING_CPU_ROWCONTRACTION_H

#include "lib/Lowering/CPU/Contraction.h"
#include "mlir/IR/Builders.h"

namespace ctxc {

/// Rows of W in a panel of many vectors; 0 where rows are too long for a panel.
int64_t panelRows(const Contraction &contraction);

/// Rows of the thread's scratch memory, which holds rows of W in float32; 0 where none is needed.
int64_t scratchRows(const Contraction &contraction);

/// W (out × in; null where it is quantised), x (rows × in, float32), y (rows × out, float32) and
/// the scratch memory (scratchRows × in, float32) are memrefs. The others are the address of W and
/// of the scratch memory, and the number of rows.
struct RowOperands {
  mlir::Value w, x, y, rows, address, scratchAddress, scratch;
};

/// Emits rows `begin` to `end` of W, for few vectors.
void emitRowsFew(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                 const RowOperands &operands, mlir::Value begin, mlir::Value end);

/// Emits rows `begin` to `end` of W, for many vectors. There must be panels.
void emitRowsMany(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                  const RowOperands &operands, mlir::Value begin, mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_ROWCONTRACTION_H
