// Integers are taken apart as bytes, of which a register holds most, and widened last. What several
// numbers share, such as a block's scales, is emitted where it is first needed.
#include "lib/Lowering/CPU/BlockReader.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "lib/Lowering/CPU/StoredBlock.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// What the readers have in common.
class NumbersOfBlock : public BlockReader, protected StoredBlock {
public:
  NumbersOfBlock(OpBuilder &b, Location loc, int64_t lanes, Value address)
      : StoredBlock(b, loc, address), lanes(lanes) {}

protected:
  using StoredBlock::bytes;
  VectorType floats(int64_t count) { return VectorType::get({count}, b.getF32Type()); }
  /// `lanes` of a vector, from `from` on.
  Value part(Value v, int64_t from) { return lanesOf(v, from, lanes); }
  Value inAllLanes(Value number) {
    return vector::BroadcastOp::create(b, loc, floats(lanes), number);
  }
  /// What twiceE2M1 computes.
  Value tableOfE2M1() {
    static constexpr float twice[] = {0, 1, 2, 3, 4, 6, 8, 12};
    return table([](int64_t i) { return i < 8 ? twice[i] : 0 - twice[i - 8]; });
  }

  /// twiceE2M1 of sixteen bytes.
  Value twice(Value fours) {
    static constexpr int8_t table[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return hasByteShuffles(lanes) ? lookedUpBytes(table, fours) : twiceE2M1(fours);
  }

  int64_t lanes;
};

//===----------------------------------------------------------------------===//
// 32 elements: the first 16 in the low halves of 16 bytes, the others in the high ones
//===----------------------------------------------------------------------===//

class Block32 : public NumbersOfBlock {
public:
  Block32(OpBuilder &b, Location loc, int64_t lanes, Value address, const Layout32 &layout)
      : NumbersOfBlock(b, loc, lanes, address), layout(layout) {}

  Value numbers(int64_t k) override {
    if (hasTables(lanes))
      return ofTable(k);
    enum { Bytes, Half, Scale = Half + 2, Minimum, Fifth };
    Value q;
    if (widensWhatItLoads(lanes)) {
      q = wideNibbles(layout.bytesAt + k % 16, lanes, k / 16);
    } else {
      Value all = once(Bytes, [&] { return bytes(layout.bytesAt, 16); });
      q = widened(part(once(Half + k / 16, [&] { return nibble(all, k / 16); }), k % 16));
    }
    if (layout.fifthAt) {
      Type wide = q.getType();
      Value fifth = once(Fifth, [&] {
        return vector::BroadcastOp::create(b, loc, wide, loaded(b.getI32Type(), layout.fifthAt));
      });
      q = either(q, fifthBits(fifth, k));
    }
    if (layout.zero)
      q = minus(q, layout.zero);
    Value scale = once(Scale, [&] { return shared16(0); });
    if (!layout.minimumAt)
      return product(scale, floatsOf(q));
    Value minimum = once(Minimum, [&] { return shared16(layout.minimumAt); });
    return exactProductPlus(scale, floatsOf(q), minimum);
  }

private:
  Value shared16(int64_t offset) { return repeated(halves(offset, 1), 0, lanes); }

  /// Looks up d times the number that four bits stand for. The fifth bit adds 16 d, which is exact:
  /// no such product has more than 16 bits.
  Value ofTable(int64_t k) {
    enum { Bytes, Scale, Multiples, Sixteen, Minimum };
    Value all = once(Bytes, [&] { return widened(bytes(layout.bytesAt, 16)); });
    Value scale = once(Scale, [&] { return shared16(0); });
    Value multiples = once(Multiples, [&] {
      return product(scale, table([&](int64_t i) { return float(i - layout.zero); }));
    });
    Value scaled = lookedUp(multiples, k ? right(all, 4) : all);
    if (layout.fifthAt) {
      Value sixteen =
          once(Sixteen, [&] { return product(scale, table([](int64_t) { return 16; })); });
      Value isSet = LLVM::BitcastOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                            loaded(b.getI16Type(), layout.fifthAt + k / 8));
      Value more = arith::AddFOp::create(b, loc, scaled, sixteen);
      scaled = arith::SelectOp::create(b, loc, isSet, more, scaled);
    }
    if (!layout.minimumAt)
      return scaled;
    Value minimum = once(Minimum, [&] { return shared16(layout.minimumAt); });
    return arith::AddFOp::create(b, loc, scaled, minimum);
  }

  /// 16 where bit k + i of the word is set, in lane i.
  Value fifthBits(Value word, int64_t k) {
    SmallVector<int32_t> bits;
    for (int64_t i = 0; i < lanes; ++i)
      bits.push_back(int32_t(uint32_t(1) << (k + i)));
    Value bit = arith::AndIOp::create(b, loc, word,
                                      arith::ConstantOp::create(b, loc, b.getI32VectorAttr(bits)));
    Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, splat(word, 0));
    return arith::SelectOp::create(b, loc, isSet, splat(word, 16), splat(word, 0));
  }

  const Layout32 &layout;
};

/// d q: d, 32 signed bytes.
class BlockQ8 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    Value scale = once(0, [&] { return repeated(halves(0, 1), 0, lanes); });
    return product(scale, numbersOf(bytes(2 + k, lanes), /*isSigned=*/true));
  }
};

/// 2^(e - 128) times twice the number: e, 16 bytes.
class BlockMXFP4 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    enum { Scale, Bytes, Half, Table };
    if (hasTables(lanes)) {
      Value all = once(Bytes, [&] { return widened(bytes(1, 16)); });
      Value numbers = once(Table, [&] {
        Value scale = inAllLanes(powerOfTwo(loaded(b.getI8Type(), 0)));
        return product(scale, tableOfE2M1());
      });
      return lookedUp(numbers, k ? right(all, 4) : all);
    }
    Value scale = once(Scale, [&] { return inAllLanes(powerOfTwo(loaded(b.getI8Type(), 0))); });
    Value all = once(Bytes, [&] { return bytes(1, 16); });
    Value half = once(Half + k / 16, [&] { return twice(nibble(all, k / 16)); });
    return product(scale, numbersOf(part(half, k % 16), /*isSigned=*/true));
  }
};

//===----------------------------------------------------------------------===//
// 32 elements whose scale is given
//===----------------------------------------------------------------------===//

/// 16 bytes, of which each has two numbers, the first in the low half.
class ScaledE2M1 : public NumbersOfBlock {
public:
  ScaledE2M1(OpBuilder &b, Location loc, int64_t lanes, Value address, Value scale)
      : NumbersOfBlock(b, loc, lanes, address), scale(scale) {}
  Value numbers(int64_t k) override {
    enum { Scale, Pairs, Table, Doubles };
    Value halved = once(Scale, [&] { // exact: the scale is a power of two
      Value half = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.5f));
      return inAllLanes(arith::MulFOp::create(b, loc, scale, half));
    });
    Value fours = once(Pairs, [&]() -> Value {
      Value pairs = bytes(0, 16);
      return vector::InterleaveOp::create(b, loc, nibble(pairs, false), nibble(pairs, true));
    });
    if (hasTables(lanes))
      return lookedUp(once(Table, [&] { return product(tableOfE2M1(), halved); }),
                      widened(part(fours, k)));
    Value half = once(Doubles + k / 16, [&] { return twice(lanesOf(fours, k / 16 * 16, 16)); });
    return product(numbersOf(part(half, k % 16), /*isSigned=*/true), halved);
  }

private:
  Value scale;
};

/// Bytes: sign, four bits of exponent, three of fraction. Moved to their places in a float16 they
/// are the number by 2^-8, also where it is subnormal. Seven ones are NaN.
class ScaledE4M3 : public NumbersOfBlock {
public:
  ScaledE4M3(OpBuilder &b, Location loc, int64_t lanes, Value address, Value scale)
      : NumbersOfBlock(b, loc, lanes, address), scale(scale) {}
  Value numbers(int64_t k) override {
    enum { Scale, Small };
    Value all = once(Scale, [&] { return inAllLanes(scale); });
    Value small = once(Small, [&] {
      Value v = arith::ExtUIOp::create(b, loc, VectorType::get({32}, b.getI16Type()), bytes(0, 32));
      Value magnitude = masked(v, 0x7f), sign = left(masked(v, 0x80), 8);
      Value isNan = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, magnitude,
                                          splat(magnitude, 0x7f));
      Value placed = arith::SelectOp::create(b, loc, isNan, splat(v, 0x7e00), left(magnitude, 7));
      return arith::BitcastOp::create(b, loc, VectorType::get({32}, b.getF16Type()),
                                      either(sign, placed));
    });
    Value number = arith::ExtFOp::create(b, loc, floats(lanes), part(small, k));
    auto up = DenseElementsAttr::get(floats(lanes), 256.0f);
    return product(product(number, arith::ConstantOp::create(b, loc, up)), all);
  }

private:
  Value scale;
};

//===----------------------------------------------------------------------===//
// 256 elements
//===----------------------------------------------------------------------===//

/// d s q - e t, with s and t for each 32: d, e, 12 bytes of s and t, with five bits 32 bytes of
/// fifth bits (bit j of byte i: element i of the j-th 32), and 128 bytes of q, of which 32 hold 64
/// elements, the first 32 in the low halves.
class BlockK : public NumbersOfBlock {
public:
  BlockK(OpBuilder &b, Location loc, int64_t lanes, Value address, bool hasFifth)
      : NumbersOfBlock(b, loc, lanes, address), hasFifth(hasFifth) {}

  Value numbers(int64_t k) override {
    enum {
      Scales,
      FifthBits,
      Bytes,
      Integers = Bytes + 4,
      Scale = Integers + 8,
      Minimum = Scale + 8,
      Numbers = Minimum + 8,
      Wide = Numbers + 8
    };
    int64_t pair = k / 64, group = k / 32;
    Value all = once(Bytes + pair, [&] { return bytes((hasFifth ? 48 : 16) + 32 * pair, 32); });
    Value both = once(Scales, [&] { return scalesOfK(); });
    Value scale = once(Scale + group, [&] { return repeated(both, group, lanes); });
    Value minimum = once(Minimum + group, [&]() -> Value {
      return arith::NegFOp::create(b, loc, repeated(both, 8 + group, lanes));
    });
    if (hasTables(lanes) && !hasFifth) {
      Value numbers = once(Numbers + group, [&] {
        return exactProductPlus(scale, table([](int64_t i) { return float(i); }), minimum);
      });
      Value wide = once(Wide + 2 * pair + k % 32 / 16, [&] { return widened(part(all, k % 32)); });
      return lookedUp(numbers, group % 2 ? right(wide, 4) : wide);
    }
    if (widensWhatItLoads(lanes) && !hasFifth) {
      Value q = wideNibbles(16 + 32 * pair + k % 32, lanes, group % 2);
      return exactProductPlus(scale, floatsOf(q), minimum);
    }
    Value q = once(Integers + group, [&] {
      Value low = nibble(all, group % 2);
      if (!hasFifth)
        return low;
      Value fifth = once(FifthBits, [&] { return bytes(16, 32); });
      Value placed = group < 4 ? left(fifth, 4 - group) : right(fifth, group - 4);
      return either(low, masked(placed, 16));
    });
    return exactProductPlus(scale, numbersOf(part(q, k % 32), /*isSigned=*/false), minimum);
  }

private:
  bool hasFifth;
};

/// d s (q - 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16 of s,
/// d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the next
/// 32, and in the high halves of both; their high bits in one byte each.
class BlockQ6 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    enum { Scales, Low, Top = Low + 4, Integers = Top + 2, Scale = Integers + 8 };
    int64_t half = k / 128, quarter = k / 32 % 4, group = k / 16;
    Value q = once(Integers + k / 32, [&] {
      int64_t which = 2 * half + quarter % 2;
      Value low = once(Low + which, [&] { return bytes(32 * which, 32); });
      Value top = once(Top + half, [&] { return bytes(128 + 32 * half, 32); });
      Value placed = quarter < 2 ? left(top, 4 - 2 * quarter) : quarter == 2 ? top : right(top, 2);
      return minus(either(nibble(low, quarter / 2), masked(placed, 48)), 32);
    });
    Value all = once(Scales, [&] { return scalesOfQ6(); });
    Value scale = once(Scale + group, [&] { return repeated(all, group, lanes); });
    return product(scale, numbersOf(part(q, k % 32), /*isSigned=*/true));
  }
};

} // namespace

bool BlockReader::reads(xf::QuantizedType format, int64_t columns) {
  return columns % elements(format) == 0;
}

bool BlockReader::hasScalesApart(xf::QuantizedType format) {
  return format.getFormat() >= xf::BlockFormat::f8e4m3;
}

int64_t BlockReader::elements(xf::QuantizedType format) {
  return std::max<int64_t>(format.getBlockElements(), CTXC_SCALED_SPAN);
}

int64_t BlockReader::bytes(xf::QuantizedType format) {
  return elements(format) / format.getBlockElements() * format.getBlockBytes();
}

std::unique_ptr<BlockReader> BlockReader::open(OpBuilder &b, Location loc, xf::QuantizedType format,
                                               int64_t lanes, Value address, Value scale) {
  switch (format.getFormat()) {
  case xf::BlockFormat::q4_0:
    return std::make_unique<Block32>(b, loc, lanes, address, layoutQ4_0);
  case xf::BlockFormat::q4_1:
    return std::make_unique<Block32>(b, loc, lanes, address, layoutQ4_1);
  case xf::BlockFormat::q5_0:
    return std::make_unique<Block32>(b, loc, lanes, address, layoutQ5_0);
  case xf::BlockFormat::q5_1:
    return std::make_unique<Block32>(b, loc, lanes, address, layoutQ5_1);
  case xf::BlockFormat::q8_0:
    return std::make_unique<BlockQ8>(b, loc, lanes, address);
  case xf::BlockFormat::q4_k:
    return std::make_unique<BlockK>(b, loc, lanes, address, /*hasFifth=*/false);
  case xf::BlockFormat::q5_k:
    return std::make_unique<BlockK>(b, loc, lanes, address, /*hasFifth=*/true);
  case xf::BlockFormat::q6_k:
    return std::make_unique<BlockQ6>(b, loc, lanes, address);
  case xf::BlockFormat::block_mxfp4:
    return std::make_unique<BlockMXFP4>(b, loc, lanes, address);
  case xf::BlockFormat::f8e4m3:
    return std::make_unique<ScaledE4M3>(b, loc, lanes, address, scale);
  case xf::BlockFormat::mxfp4:
    return std::make_unique<ScaledE2M1>(b, loc, lanes, address, scale);
  }
  llvm_unreachable("an unknown block format");
}
