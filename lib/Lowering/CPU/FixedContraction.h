// Products of a quantised W with vectors in fixed point (ctxc/Numerics/FixedVectors.h), which are
// as exact as those in float32. A number of W is d (w − zero) + m with a byte w, and d and m of a
// group of 16 or 32. Four numbers of a row are multiplied with the digits a, b and c of four of a
// vector in one instruction each. For eight numbers,
//
//   t = 2⁸ (2⁸ Σ w a + Σ w b) + Σ w c − zero Σ v = Σ (w − zero) v
//
// exactly, so that only every eighth product becomes float32 and takes part in the sums there. In
// float32, each number of W would have to be widened by itself, which takes longer than memory
// needs to deliver four bits.
//
// The order of the float32 sums is fixed, and the same for any number of vectors and threads. A
// span of 256 numbers has 16 sums t of each half (FixedVectors.h says of which numbers). Span by
// span, lane l of 16 adds m of group l times the group's Σ u v (where l is one of 8 groups, and
// there is an m), and then sum l of each half as fma(t, d u, lane). At last the second half of the
// lanes is added to the first half, and so on. With γ of Contraction.h and n = 3 ⌈K / 256⌉ + 6 the
// error is at most
//
//   γ Σ_k (d |w − zero| + |m|) |x_k| + Σ over blocks of 1.004 · 2⁻²³ max |x| Σ_k |W[m, k]|.
#ifndef CTXC_LIB_LOWERING_CPU_FIXEDCONTRACTION_H
#define CTXC_LIB_LOWERING_CPU_FIXEDCONTRACTION_H

#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/RowContraction.h"

namespace ctxc {

/// Whether matrices in this format are multiplied in this way.
bool multipliesFixed(xf::QuantizedType format, const CpuTarget &target, ByteProducts products);

/// Emits rows `begin` to `end` of W, for any number of vectors. `vectors` is the address of the
/// rounded ones (RoundVectors.h).
void emitFixed(mlir::OpBuilder &b, mlir::Location loc, const Contraction &contraction,
               const RowOperands &operands, mlir::Value vectors, mlir::Value begin,
               mlir::Value end);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_FIXEDCONTRACTION_H
