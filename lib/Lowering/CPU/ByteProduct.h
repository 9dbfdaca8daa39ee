// Sums of products of four bytes each, by the instructions of the target.
#ifndef CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H
#define CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

namespace ctxc {

/// How a target multiplies bytes with signed ones, four at a time into 32 bits.
enum class ByteProducts {
  Plain,    ///< in products of 32 bits
  X86Pairs, ///< pairs of 16 bits (pmaddwd, pmaddubsw)
  X86Dot,   ///< vpdpbusd, of AVX512-VNNI or AVX-VNNI
  ArmDot,   ///< sdot
  ArmMixed  ///< usdot, of i8mm
};
ByteProducts byteProductsOf(const CpuTarget &target);

/// --ctxc-lower-contractions with the options of a target.
std::unique_ptr<mlir::Pass> createLowerContractionsFor(const CpuTarget &target);

/// The bytes of a matrix: none is larger than `largest`. Signed ones are multiplied in pairs of 16
/// bits alone.
struct ByteRange {
  int64_t largest;
  bool isSigned = false; ///< from −128 to 127; `largest` is then of their magnitudes
};

/// sums[i] + Σ_{j < 4} w[4 i + j] x[4 i + j], exactly: sums is a vector of 4, 8 or 16 i32, w of
/// bytes in the range, x of signed ones from −127 to 127.
mlir::Value addByteProducts(mlir::OpBuilder &b, mlir::Location loc, ByteProducts products,
                            mlir::Value sums, mlir::Value w, mlir::Value x, ByteRange range);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H
