// Products of a bfloat16 matrix W with many vectors that are rounded to bfloat16. One instruction
// multiplies pairs of adjacent numbers and adds both products to float32 sums, which is twice the
// arithmetic of float32.
//
// Each lane of such an instruction holds one pair of a row of W, and all lanes are multiplied with
// the same pair of a vector. A panel of W is therefore copied first, with the pairs of adjacent
// rows side by side. The panel stays in the caches while all vectors are multiplied with it, one
// tile at a time. The sums of a tile stay in registers along a panel, and in y between panels.
//
// The order of a sum is fixed here too, pair by pair along the row. It depends neither on the
// number of vectors nor on threads.
#ifndef CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H
#define CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H

#include "mlir/IR/Builders.h"

namespace ctxc {

struct Contraction;

/// W (out × in, bfloat16) and y (`rows` × out, float32) are memrefs; `x` is the address of the
/// rounded vectors (RoundVectors.h). Where `transposed` is set, W is in × out. Where `isSplit` is
/// set, x and W, which may be float32, float16 or quantised, are split (SplitNumbers.h). A
/// quantised W is decoded into `w`, memory for decodedRows rows at `address`, from the blocks at
/// `blocks`.
struct RoundedOperands {
  static constexpr int64_t decodedRows = 16;
  mlir::Value w, x, y, rows;
  bool transposed, isSplit;
  const Contraction *quantised = nullptr;
  mlir::Value blocks = {}, address = {};
};

/// Emits code for outputs `begin` to `end`, which are columns of y. `lanes` is the number of
/// float32 lanes in a register.
void emitRounded(mlir::OpBuilder &b, mlir::Location loc, const RoundedOperands &operands,
                 mlir::Value begin, mlir::Value end, int64_t lanes);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROUNDEDCONTRACTION_H
