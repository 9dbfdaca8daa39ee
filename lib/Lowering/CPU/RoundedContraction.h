// Many vectors, rounded to bfloat16 as W is, with W: products of pairs of numbers that lie side by
// side are added to float32 sums by one instruction, twice the arithmetic of float32.
//
// An instruction takes as many rows of W as it has lanes, of each a pair, and one pair of a vector.
// So a panel of W is copied first with the pairs of adjacent rows side by side; it stays in the
// caches while all vectors pass, a tile of them at a time. Sums of a tile stay in registers along a
// panel, and lie in y between panels.
//
// A sum has one order here too, along the row by pairs: it depends neither on how many vectors
// there are nor on threads.
#ifndef CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H
#define CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H

#include "mlir/IR/Builders.h"

namespace ctxc {

/// W (out × in, bfloat16) and y (`rows` × out, float32), memrefs; the address of the rounded x
/// (RoundVectors.h); and `rows`. Where `transposed`, W is in × out.
struct RoundedOperands {
  mlir::Value w, x, y, rows;
  bool transposed;
};

/// Outputs `begin` to `end`, that is, columns of y. `lanes` are a register's of float32.
void emitRounded(mlir::OpBuilder &b, mlir::Location loc, const RoundedOperands &operands,
                 mlir::Value begin, mlir::Value end, int64_t lanes);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H
