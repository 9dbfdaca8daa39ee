// Products of a quantised W with vectors that are rounded to 8 bits for each 32 numbers
// (ctxc/Numerics/ByteVectors.h). Bytes are multiplied with bytes, four products of a lane are added
// to 32 bits by one instruction where the target has one, and only the sum of a group becomes
// float32.
//
// With few vectors, a register holds 16, 32 or 64 bytes of a row, and so parts of the sums of
// several groups. They are added up across registers, two at a time, until each lane has the sum of
// one group. Where a register of AVX-512 has four lanes of each group, two instructions add up two
// of them, as pairs of 16 bits, which the sums fit; for formats in four or five bits, bytes of the
// row are taken in an order in which that is so (ctxc_byte_span has the vector's). For many vectors, groups of rows are transposed first, so that a lane holds four
// adjacent bytes of a row, and all lanes are multiplied with the same four of a vector.
//
// The order of the float32 sums is fixed, and the same for any number of vectors and threads, since
// the integers' order makes no difference. A span has 8 or 16 groups; sum j adds those of number j
// of all spans along the row, each as fma(scale of W times scale of x, integer, sum) and, where the
// format has minima, fma(minimum, scaled sum of x, sum) after it; then the second half of the sums
// is added to the first half, and so on.
#ifndef CTXC_LIB_LOWERING_CPU_INTEGERCONTRACTION_H
#define CTXC_LIB_LOWERING_CPU_INTEGERCONTRACTION_H

#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/RowContraction.h"

namespace ctxc {

/// The most rows of W that are multiplied at a time with few vectors.
int64_t integerStreams(const Contraction &contraction);

/// Emits rows `begin` to `end` of W, for any number of vectors. `vectors` is the address of the
/// rounded ones (RoundVectors.h).
void emitInteger(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
                 const RowOperands &operands, mlir::Value vectors, mlir::Value begin,
                 mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_INTEGERCONTRACTION_H
