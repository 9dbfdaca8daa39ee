// The code of y[s, m] = Σ_k W[k, m] x[s, k], for a matrix that is stored as (in, out).
//
// A sum is taken by blocks of k: within a block one product after the other, in the order in which
// few vectors meet its rows, and then block after block. So it depends neither on threads nor on
// how many vectors there are. With u = 2⁻²⁴, n the length of a block and the number of blocks
// together, and γ = n u / (1 − n u), it is off by at most γ Σ_k |W[k, m] x[s, k]|.
//
// Few vectors are bound by memory. Threads share out the blocks, and each reads a block in a few
// streams that run through memory in one direction, which is what the processor's prefetchers
// follow best; a sum is loaded and stored once for a row of each. A block's sums have memory of
// their own, and are added up when all are there. (Had threads columns instead, each would read its
// part of every row: with rows of 3 KB that took 1.4 times as long.)
//
// Many vectors are bound by arithmetic, and threads share out columns. A panel of W, a block of
// some columns, is copied in float32, the columns of a tile side by side for each k; it stays in
// the second-level cache while all vectors pass. A tile keeps vectors × columns sums in registers
// along a panel, which are added to y at its end.
#ifndef CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H
#define CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H

#include "lib/Lowering/CPU/Contraction.h"
#include "mlir/IR/Builders.h"

namespace ctxc {

/// Columns of W that threads share out together where vectors are many.
int64_t transposedUnit(const Contraction &contraction);

/// What threads share out where vectors are few.
int64_t transposedBlocks(const Contraction &contraction);

/// W (in × out), x (rows × in, float32), memrefs; where results go; x's address; and `rows`.
struct TransposedOperands {
  mlir::Value w, x, y, xAddress, rows;
};

/// Blocks `begin` to `end`, with few vectors. `y` is the address of the blocks' sums:
/// blocks × rows × out.
void emitTransposedFew(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                       const TransposedOperands &operands, mlir::Value begin, mlir::Value end);
/// Adds `name`(frame) to the module, which adds up the blocks' sums.
mlir::func::FuncOp emitTransposedTotals(const Contraction &contraction, mlir::ModuleOp module,
                                        llvm::StringRef name, mlir::Location loc);

/// Columns `begin` to `end` of W and of y, a memref (rows × out), with many vectors. `begin` is a
/// multiple of the unit, and so is `end`, unless it is the last column's.
void emitTransposedMany(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                        const TransposedOperands &operands, mlir::Value begin, mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H
