// The code of y[s, m] = Σ_k W[k, m] x[s, k], for a matrix that is stored as (in, out).
//
// A sum goes by blocks of k: within a block one product is added after the other, in the order in
// which the path for few vectors reads the rows; then the blocks are added up in order. The order
// depends neither on threads nor on the number of vectors. With u = 2⁻²⁴, n the length of a block
// plus the number of blocks, and γ = n u / (1 − n u), the error is at most γ Σ_k |W[k, m] x[s, k]|.
//
// Few vectors are bound by memory bandwidth. Threads divide the blocks, and each thread reads a
// block in a few access streams that run through memory in one direction, which the processor's
// prefetchers follow best; each sum is loaded and stored once for one row of every stream. The sums
// of each block have memory of their own, and are added up when all blocks are done. (If threads
// divided the columns instead, each would read its part of every row: with rows of 3 KB this took
// 1.4 times as long.)
//
// Many vectors are bound by arithmetic, and threads divide the columns. A panel of W is one block
// of some columns. It is copied as float32, with the columns of a tile side by side for each k, and
// stays in the second-level cache while all vectors are multiplied with it. A tile keeps vectors ×
// columns sums in registers along a panel, and adds them to y at its end.
#ifndef CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H
#define CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H

#include "lib/Lowering/CPU/Contraction.h"
#include "mlir/IR/Builders.h"

namespace ctxc {

/// Columns of W in one unit of work for threads, when there are many vectors.
int64_t transposedUnit(const Contraction &contraction);

/// The number of blocks that threads divide among them, when there are few vectors.
int64_t transposedBlocks(const Contraction &contraction);

/// W (in × out) and x (rows × in, float32) are memrefs. The others are the memory for the results,
/// the address of x, and the number of rows.
struct TransposedOperands {
  mlir::Value w, x, y, xAddress, rows;
};

/// Emits blocks `begin` to `end`, for few vectors. `y` is the address of the sums of all blocks:
/// blocks × rows × out.
void emitTransposedFew(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                       const TransposedOperands &operands, mlir::Value begin, mlir::Value end);
/// Adds the function `name`(frame) to the module, which adds up the sums of the blocks.
mlir::func::FuncOp emitTransposedTotals(const Contraction &contraction, mlir::ModuleOp module,
                                        llvm::StringRef name, mlir::Location loc);

/// Emits columns `begin` to `end` of W and of y, a memref (rows × out), for many vectors. `begin`
/// is a multiple of the unit, and so is `end`, unless it is the number of columns.
void emitTransposedMany(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                        const TransposedOperands &operands, mlir::Value begin, mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_TRANSPOSEDCONTRACTION_H
