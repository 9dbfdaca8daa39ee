// Sums of products of four bytes each, by the instructions of the target.
#ifndef CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H
#define CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H

#include "ctxc/Lowering/CpuTarget.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

namespace ctxc {

/// How a target multiplies unsigned bytes with signed ones, four at a time into 32 bits.
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

/// sums[i] + Σ_{j < 4} w[4 i + j] x[4 i + j], exactly: sums is a vector of 4, 8 or 16 i32, w of
/// unsigned bytes that are at most `largest`, x of signed ones.
mlir::Value addByteProducts(mlir::OpBuilder &b, mlir::Location loc, ByteProducts products,
                            mlir::Value sums, mlir::Value w, mlir::Value x, int64_t largest);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BYTEPRODUCT_H
