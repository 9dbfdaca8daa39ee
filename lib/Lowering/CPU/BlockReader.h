// The numbers of a block of a quantised row, decoded into registers.
#ifndef CTXC_LIB_LOWERING_CPU_BLOCKREADER_H
#define CTXC_LIB_LOWERING_CPU_BLOCKREADER_H

#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include <memory>

namespace ctxc {

/// Emits the decoding of one block of a row. A number is the format's formula in float32, in the
/// order of operations that ctxc_decode (Numerics/BlockFormats.h) has, so that both agree to the
/// last bit. Where scales lie apart, a block is CTXC_SCALED_SPAN elements
/// (Numerics/ScaledFormats.h).
class BlockReader {
public:
  virtual ~BlockReader() = default;

  /// Whether rows of so many columns have whole blocks.
  static bool reads(xf::QuantizedType format, int64_t columns);
  static bool hasScalesApart(xf::QuantizedType format);
  /// The size of a block.
  static int64_t elements(xf::QuantizedType format);
  static int64_t bytes(xf::QuantizedType format);

  /// A reader of the block at `address` (llvm.ptr, in any alignment), which emits at `b`'s
  /// insertion point. `lanes` divides 16. `scale` (f32) is the block's where scales lie apart.
  static std::unique_ptr<BlockReader> open(mlir::OpBuilder &b, mlir::Location loc,
                                           xf::QuantizedType format, int64_t lanes,
                                           mlir::Value address, mlir::Value scale);

  /// Numbers k to k + lanes of the block (vector<lanes x f32>), k a multiple of lanes.
  virtual mlir::Value numbers(int64_t k) = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BLOCKREADER_H
