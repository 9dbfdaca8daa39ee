// Products of a bfloat16 matrix W with many vectors that are rounded to bfloat16, in the tile
// registers of AMX. One instruction multiplies 16 rows of 32 numbers of x with 16 rows of 32
// numbers of W, whose pairs lie side by side (RoundedPanel.h), and adds the products to 16 × 16
// float32 sums: sixteen times the arithmetic of pairs in vectors.
//
// Of the eight registers, four hold the sums of 32 vectors and 32 rows of W, and two each a part of
// x and of W, so that each part that is loaded is multiplied twice. LLVM configures the registers
// when a function begins, and releases them at its end. A process asks the system for them before
// it runs such code (CpuFeatures.h).
//
// Sums of fewer than 16 vectors or rows that remain are computed as whole tiles, together with
// vectors of the tile before, and only what is new is stored. So each sum has one order: 32 numbers
// along the row at a time, as the instruction adds them. It depends neither on the number of
// vectors nor on threads.
#ifndef CTXC_LIB_LOWERING_TILECONTRACTION_H
#define CTXC_LIB_LOWERING_TILECONTRACTION_H

#include "lib/Lowering/CPU/RoundedContraction.h"

namespace ctxc {

/// Emits code for outputs `begin` to `end`, which are columns of y. There are at least 16 vectors.
void emitTiles(mlir::OpBuilder &b, mlir::Location loc, const RoundedOperands &operands,
               mlir::Value begin, mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_TILECONTRACTION_H
