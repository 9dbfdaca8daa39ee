// The readers of ByteBlock.h: what they share, and how those of 256 are opened.
#ifndef CTXC_LIB_LOWERING_CPU_BYTESPAN_H
#define CTXC_LIB_LOWERING_CPU_BYTESPAN_H

#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/StoredBlock.h"
#include "lib/Lowering/StoredLayout.h"

namespace ctxc {

/// What the readers of all formats share.
class ByteSpan : public ByteBlock, protected StoredBlock {
public:
  static constexpr int64_t blockGroup = 32; ///< numbers of a small block

  ByteSpan(mlir::OpBuilder &b, mlir::Location loc, xf::QuantizedType format, const Place &place)
      : StoredBlock(b, loc, layoutOf(format), place.address), place(place) {}

  Value run(int64_t i) override {
    auto integersAt = [&](int64_t at) { return once(~at, [&] { return integers(at); }); };
    return eightsOf(integersAt(i / 2 * 2), integersAt(i / 2 * 2 + 1), i % 2,
                    {0, 2, 4, 6, 8, 10, 12, 14});
  }

protected:
  static constexpr int64_t smallBlocks = span / blockGroup;
  static constexpr int64_t widest = 64; ///< bytes of AVX-512's registers

  /// Eights of the bytes of v and then w, `from` those that `order` names.
  Value eightsOf(Value v, Value w, int64_t from, llvm::SmallVector<int64_t> order) {
    auto eights = VectorType::get({8}, b.getI64Type());
    for (int64_t &at : order)
      at += from;
    Value all = shuffled(mlir::vector::BitCastOp::create(b, loc, eights, v),
                         mlir::vector::BitCastOp::create(b, loc, eights, w), order);
    return mlir::vector::BitCastOp::create(b, loc, v.getType(), all);
  }

  /// Vectors of one type, one after the other; a power of two of them.
  Value joined(llvm::ArrayRef<Value> parts) {
    llvm::SmallVector<Value> all(parts);
    while (all.size() > 1) {
      llvm::SmallVector<Value> pairs;
      for (size_t i = 0; i < all.size(); i += 2) {
        int64_t size = 2 * mlir::cast<VectorType>(all[i].getType()).getDimSize(0);
        llvm::SmallVector<int64_t> order(size);
        std::iota(order.begin(), order.end(), 0);
        pairs.push_back(shuffled(all[i], all[i + 1], order));
      }
      all = pairs;
    }
    return all.front();
  }
  /// Vectors of bytes, one after the other, with the bits of vector i moved right by rights[i]
  /// (left where it is negative), all to the right or all to the left. Bits cross into a neighbour,
  /// and have to be masked: pairs of bytes are moved, for which there are instructions.
  Value moved(llvm::ArrayRef<Value> parts, llvm::ArrayRef<int64_t> rights) {
    Value all = joined(parts);
    int64_t pairs = mlir::cast<VectorType>(all.getType()).getDimSize(0) / 2;
    if (llvm::all_of(rights, [](int64_t by) { return by == 0; }))
      return all;
    llvm::SmallVector<int16_t> by;
    for (int64_t i = 0; i < pairs; ++i)
      by.push_back(int16_t(std::abs(rights[i * rights.size() / pairs])));
    auto type = VectorType::get({pairs}, b.getI16Type());
    Value amount = mlir::arith::ConstantOp::create(
        b, loc, mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int16_t>(by)));
    Value wide = mlir::vector::BitCastOp::create(b, loc, type, all);
    bool isLeft = llvm::any_of(rights, [](int64_t r) { return r < 0; });
    wide = isLeft ? Value(mlir::arith::ShLIOp::create(b, loc, wide, amount))
                  : Value(mlir::arith::ShRUIOp::create(b, loc, wide, amount));
    return mlir::vector::BitCastOp::create(b, loc, all.getType(), wide);
  }

  VectorType floats(int64_t count) { return VectorType::get({count}, b.getF32Type()); }
  Value noBytes(int64_t count) { return zeros(VectorType::get({count}, b.getI8Type())); }

  /// What is shuffled into registers of 512 bits. It is a volatile load for these: LLVM would
  /// otherwise load the parts by themselves, or take them out of other loads bit by bit.
  Value whole(mlir::Type element, int64_t offset, int64_t count) {
    return mlir::LLVM::LoadOp::create(b, loc, VectorType::get({count}, element), at(offset),
                                      /*alignment=*/1, /*isVolatile=*/place.width == widest);
  }
  Value wholeBytes(int64_t offset, int64_t count) { return whole(b.getI8Type(), offset, count); }

  /// One number of each small block, `offset` into it; 0 for blocks that are not there.
  Value ofBlocks(mlir::Type type, int64_t offset) {
    llvm::SmallVector<Value> each;
    for (int64_t i = 0; i < smallBlocks; ++i)
      each.push_back(
          i < place.present
              ? loaded(type, i * layout.bytes + offset)
              : mlir::arith::ConstantOp::create(b, loc, b.getZeroAttr(type)).getResult());
    return mlir::vector::FromElementsOp::create(
        b, loc, VectorType::get({int64_t(each.size())}, type), each);
  }
  /// float16 of each small block, as float32. Shuffled out of registers of 512 bits, that takes
  /// fewer instructions than a load of each.
  Value halvesOfBlocks(int64_t offset) {
    const int64_t stride = layout.bytes;
    mlir::Type half = b.getF16Type();
    auto type = floats(smallBlocks);
    if (place.width < widest || place.present < smallBlocks)
      return mlir::arith::ExtFOp::create(b, loc, type, ofBlocks(half, offset));
    // Lane i gets the half of block i, and each shuffle keeps what those before it have found.
    llvm::SmallVector<int64_t> from(widest / 2, mlir::vector::ShuffleOp::kPoisonIndex);
    Value all;
    for (int64_t i = 0; i < smallBlocks;) {
      int64_t first = std::min(i * stride + offset, smallBlocks * stride - widest);
      Value next = whole(half, first, widest / 2);
      for (; i < smallBlocks && i * stride + offset + 2 <= first + widest; ++i)
        from[i] = (all ? widest : 0) / 2 + (i * stride + offset - first) / 2;
      if (!all) {
        all = next;
        continue;
      }
      all = shuffled(all, next, from);
      std::iota(from.begin(), from.begin() + i, 0);
    }
    return mlir::arith::ExtFOp::create(b, loc, type, lanesOf(all, 0, smallBlocks));
  }

  /// The bytes that four bits stand for: 16 more than twice the number (StoredBlock::twiceE2M1).
  Value looked(Value fours) {
    if (place.products != ByteProducts::X86Pairs && place.products != ByteProducts::X86Dot)
      return plus(twiceE2M1(fours), 16);
    static constexpr int8_t table[] = {16, 17, 18, 19, 20, 22, 24, 28,
                                       16, 15, 14, 13, 12, 10, 8,  4};
    return lookedUpBytes(table, fours);
  }

  Place place;
};

/// A reader of a block of 256, as ByteBlock::open.
std::unique_ptr<ByteBlock> openBlockOf256(mlir::OpBuilder &b, mlir::Location loc,
                                          xf::QuantizedType format, const ByteBlock::Place &place);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_BYTESPAN_H
