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

  /// How many numbers of a row are best multiplied before those of another row are.
  static int64_t together(xf::QuantizedType format, int64_t lanes);

  /// Where a block is, and what its reader takes besides.
  struct Place {
    mlir::Value address;     ///< of the block (llvm.ptr, in any alignment)
    mlir::Value scale = {};  ///< the block's (f32) where scales lie apart
    mlir::Value memory = {}; ///< room for memoryBytes (llvm.ptr), or null: see `open`
  };
  /// At most four for each element of a block.
  static int64_t memoryBytes(xf::QuantizedType format) {
    return elements(format) == 256 ? 320 : 64;
  }

  /// A reader of the block at `place`, which emits at `b`'s insertion point. `lanes` divides 16.
  /// It keeps in the memory, if there is some, what it widens or repeats: from there that is one
  /// instruction, and from a register two or three.
  static std::unique_ptr<BlockReader> open(mlir::OpBuilder &b, mlir::Location loc,
                                           xf::QuantizedType format, int64_t lanes,
                                           const Place &place);

  /// Numbers k to k + lanes of the block (vector<lanes x f32>), k a multiple of lanes.
  virtual mlir::Value numbers(int64_t k) = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BLOCKREADER_H
