// The integers of 256 numbers of a quantised row, for products with rounded vectors.
#ifndef CTXC_LIB_LOWERING_CPU_BYTEBLOCK_H
#define CTXC_LIB_LOWERING_CPU_BYTEBLOCK_H

#include "dialects/XF/XF.h"
#include "lib/Lowering/CPU/ByteProduct.h"
#include "mlir/IR/Builders.h"
#include <memory>

namespace ctxc {

/// 256 numbers of a row for products with vectors in fixed point (FixedContraction.h).
class RowSpan {
public:
  virtual ~RowSpan() = default;
  /// The integers of run i of four, in the order that ctxc_fixed_span has its digits in
  /// (vector<64 x i8>).
  virtual mlir::Value run(int64_t i) = 0;
  /// Of each group (vector<groups x f32>).
  virtual mlir::Value scales() = 0;
  virtual mlir::Value minima() { return {}; } ///< null where there are none
};

/// A number of the row is scale (w - zero) + minimum, where w is an integer of eight bits, and
/// scale and minimum are those of its group.
class ByteBlock : public RowSpan {
public:
  static constexpr int64_t span = 256; ///< numbers of a reader
  static constexpr int64_t runBytes = 64;

  /// What is the same for all rows in a format.
  struct Shape {
    int64_t groups;   ///< of a span: 8 of 32 numbers, or 16 of 16
    int64_t zeroBits; ///< zero is 2 to this power; -1: it is 0
    bool hasMinima;
    ByteRange range; ///< of w
    /// Whether bytes have numbers of both halves of a group, or of two groups, which take fewer
    /// instructions to put in the order of ctxc_byte_span's pieces than in their own.
    bool hasPieces = false;
    int64_t group() const { return span / groups; }
  };
  static Shape shapeOf(xf::QuantizedType format, ByteProducts products);
  /// Of a span of a row.
  static int64_t bytesOf(xf::QuantizedType format) {
    return span / format.getBlockElements() * format.getBlockBytes();
  }
  /// Whether rows of so many columns have whole blocks.
  static bool reads(xf::QuantizedType format, int64_t columns);

  /// Where a span is, and who reads it.
  struct Place {
    mlir::Value address; ///< of its first block (llvm.ptr, in any alignment)
    mlir::Value scales;  ///< address of its scales (f32), where they lie apart
    int64_t present;     ///< groups of 32 that the row has there; what is beyond them is 0
    int64_t width;       ///< bytes of a vector register: 16, 32 or 64
    ByteProducts products;
  };
  /// A reader, which emits at b's insertion point.
  static std::unique_ptr<ByteBlock> open(mlir::OpBuilder &b, mlir::Location loc,
                                         xf::QuantizedType format, const Place &place);

  /// The integers from i `width` on (vector<width x i8>). The width of runs is 64.
  virtual mlir::Value integers(int64_t i) = 0;

  /// The integers of run i of four, in the order of ctxc_byte_span's pieces (vector<64 x i8>). The
  /// shape has pieces, and the width is 64.
  virtual mlir::Value pieces(int64_t i);
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BYTEBLOCK_H
