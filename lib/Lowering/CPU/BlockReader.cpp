// Integers are taken apart as bytes, of which a register holds most, and widened last. What several
// numbers share, such as a block's scales, is emitted where it is first needed.
#include "lib/Lowering/CPU/BlockReader.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "lib/Lowering/CPU/StoredBlock.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/StoredLayout.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// What the readers have in common.
class NumbersOfBlock : public BlockReader, protected StoredBlock {
public:
  NumbersOfBlock(OpBuilder &b, Location loc, xf::QuantizedType format, int64_t lanes,
                 const Place &place)
      : StoredBlock(b, loc, layoutOf(format), place.address), lanes(lanes), scaleApart(place.scale),
        memory(place.memory) {}

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

  /// Numbers `from` to from + lanes of the bytes that `make` emits once, as float32. In the memory
  /// the bytes are at `at`.
  Value numbersOfBytes(int64_t at, int64_t from, bool isSigned, function_ref<Value()> make) {
    Value all = kept(at, make);
    if (!memory)
      return numbersOf(part(all, from), isSigned);
    return numbersOf(inMemory(at + from, VectorType::get({lanes}, b.getI8Type())), isSigned);
  }
  /// Stores scales ahead of all that reads them, so that this waits for none of it.
  void keepScales(function_ref<Value()> make) {
    if (memory)
      kept(scalesAt, make);
  }
  /// Scale i of those that `make` emits once, in all lanes.
  Value scaleOf(int64_t i, function_ref<Value()> make) {
    Value all = kept(scalesAt, make);
    if (!memory)
      return repeated(all, i, lanes);
    return inAllLanes(inMemory(scalesAt + 4 * i, b.getF32Type()));
  }

  /// twiceE2M1 of sixteen bytes.
  Value twice(Value fours) {
    static constexpr int8_t table[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return hasByteShuffles(lanes) ? lookedUpBytes(table, fours) : twiceE2M1(fours);
  }

  int64_t lanes;
  Value scaleApart;

private:
  static constexpr int64_t scalesAt = 256; ///< in the memory, behind 256 bytes

  Value inMemory(int64_t byte, Type type) {
    if (!readMemory)
      readMemory = hidden(b, loc, memory);
    return LLVM::LoadOp::create(b, loc, type, placeIn(readMemory, byte), /*alignment=*/1);
  }
  Value placeIn(Value memory, int64_t byte) {
    return LLVM::GEPOp::create(b, loc, memory.getType(), b.getI8Type(), memory,
                               ArrayRef<LLVM::GEPArg>{int32_t(byte)});
  }
  /// What `make` emits, once for each place in the memory, and stored there if there is one.
  Value kept(int64_t at, function_ref<Value()> make) {
    return once(~at, [&] {
      Value made = make();
      if (memory)
        LLVM::StoreOp::create(b, loc, made, placeIn(memory, at), /*alignment=*/1);
      return made;
    });
  }

  Value memory, readMemory; ///< the same address
};

//===----------------------------------------------------------------------===//
// 32 elements: the first 16 in the low halves of 16 bytes, the others in the high ones
//===----------------------------------------------------------------------===//

class Block32 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;

  Value numbers(int64_t k) override {
    if (hasTables(lanes))
      return ofTable(k);
    enum { Scale, Minimum };
    Value scale = once(Scale, [&] { return shared16(0); });
    if (!layout.minimumAt)
      return product(scale, integers(k));
    Value minimum = once(Minimum, [&] { return shared16(layout.minimumAt); });
    return exactProductPlus(scale, integers(k), minimum);
  }

private:
  Value integers(int64_t k) {
    if (layout.top.bits || !widensWhatItLoads(lanes))
      return numbersOfBytes(0, k, /*isSigned=*/true, [&] { return all(); });
    Value q = wideNibbles(layout.low.at + k % 16, lanes, k / 16);
    return floatsOf(layout.zero ? minus(q, layout.zero) : q);
  }

  /// The 32 integers as bytes.
  Value all() {
    Value pairs = bytes(layout.low.at, 16);
    Value q = shuffled(nibble(pairs, false), nibble(pairs, true), upTo(32));
    if (layout.top.bits)
      q = either(q, fifthBits());
    return layout.zero ? minus(q, layout.zero) : q;
  }

  /// 16 where the bit of the number is set.
  Value fifthBits() {
    Value four = loaded(VectorType::get({4}, b.getI8Type()), layout.top.at);
    SmallVector<int64_t> byteOf;
    SmallVector<int8_t> bitOf;
    for (int64_t i = 0; i < 32; ++i) {
      byteOf.push_back(i / 8);
      bitOf.push_back(int8_t(1 << i % 8));
    }
    auto type = VectorType::get({32}, b.getI8Type());
    Value bits = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef(bitOf)));
    Value own = arith::AndIOp::create(b, loc, shuffled(four, four, byteOf), bits);
    Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, own, bits);
    return arith::SelectOp::create(b, loc, isSet, splat(own, 16), splat(own, 0));
  }

  Value shared16(int64_t offset) { return repeated(halves(offset, 1), 0, lanes); }

  /// Looks up d times the number that four bits stand for. The fifth bit adds 16 d, which is exact:
  /// no such product has more than 16 bits.
  Value ofTable(int64_t k) {
    enum { Bytes, Scale, Multiples, Sixteen, Minimum };
    Value all = once(Bytes, [&] { return widened(bytes(layout.low.at, 16)); });
    Value scale = once(Scale, [&] { return shared16(0); });
    Value multiples = once(Multiples, [&] {
      return product(scale, table([&](int64_t i) { return float(i - layout.zero); }));
    });
    Value scaled = lookedUp(multiples, k ? right(all, 4) : all);
    if (layout.top.bits) {
      Value sixteen =
          once(Sixteen, [&] { return product(scale, table([](int64_t) { return 16; })); });
      Value isSet = LLVM::BitcastOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                            loaded(b.getI16Type(), layout.top.at + k / 8));
      Value more = arith::AddFOp::create(b, loc, scaled, sixteen);
      scaled = arith::SelectOp::create(b, loc, isSet, more, scaled);
    }
    if (!layout.minimumAt)
      return scaled;
    Value minimum = once(Minimum, [&] { return shared16(layout.minimumAt); });
    return arith::AddFOp::create(b, loc, scaled, minimum);
  }
};

/// d q: d, 32 signed bytes.
class BlockQ8 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    Value scale = once(0, [&] { return repeated(halves(0, 1), 0, lanes); });
    return product(scale, numbersOf(bytes(layout.low.at + k, lanes), /*isSigned=*/true));
  }
};

/// 2^(e - 128) times twice the number: e, 16 bytes.
class BlockMXFP4 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    enum { Scale, Bytes, Table };
    Value scale = once(Scale, [&] { return inAllLanes(tabledPower(loaded(b.getI8Type(), 0))); });
    if (hasTables(lanes)) {
      Value all = once(Bytes, [&] { return widened(bytes(layout.low.at, 16)); });
      Value numbers = once(Table, [&] { return product(scale, tableOfE2M1()); });
      return lookedUp(numbers, k ? right(all, 4) : all);
    }
    return product(scale, numbersOfBytes(k / 16 * 16, k % 16, /*isSigned=*/true, [&] {
                     Value all = once(Bytes, [&] { return bytes(layout.low.at, 16); });
                     return twice(nibble(all, k / 16));
                   }));
  }
};

//===----------------------------------------------------------------------===//
// 32 elements whose scale is given
//===----------------------------------------------------------------------===//

/// 16 bytes, of which each has two numbers, the first in the low half.
class ScaledE2M1 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    enum { Scale, Pairs, Table, Doubles };
    Value halved = once(Scale, [&] { // exact: the scale is a power of two
      Value half = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.5f));
      return inAllLanes(arith::MulFOp::create(b, loc, scaleApart, half));
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
};

/// Bytes: sign, four bits of exponent, three of fraction. Moved to their places in a float16 they
/// are the number by 2^-8, also where it is subnormal. Seven ones are NaN.
class ScaledE4M3 : public NumbersOfBlock {
public:
  using NumbersOfBlock::NumbersOfBlock;
  Value numbers(int64_t k) override {
    enum { Scale, Small };
    Value all = once(Scale, [&] { return inAllLanes(scaleApart); });
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
};

//===----------------------------------------------------------------------===//
// 256 elements
//===----------------------------------------------------------------------===//

/// d s q - e t, with s and t for each 32: d, e, 12 bytes of s and t, with five bits 32 bytes of
/// fifth bits (bit j of byte i: element i of the j-th 32), and 128 bytes of q, of which 32 hold 64
/// elements, the first 32 in the low halves.
class BlockK : public NumbersOfBlock {
public:
  BlockK(OpBuilder &b, Location loc, xf::QuantizedType format, int64_t lanes, const Place &place)
      : NumbersOfBlock(b, loc, format, lanes, place) {
    keepScales([&] { return scalesOfK(); });
  }

  Value numbers(int64_t k) override {
    enum {
      FifthBits,
      Bytes,
      Scale = Bytes + 4,
      Minimum = Scale + 8,
      Numbers = Minimum + 8,
      Wide = Numbers + 8
    };
    int64_t pair = k / 64, group = k / 32;
    Value all = once(Bytes + pair, [&] { return bytes(layout.low.at + 32 * pair, 32); });
    auto scales = [&](int64_t i) { return scaleOf(i, [&] { return scalesOfK(); }); };
    Value scale = once(Scale + group, [&] { return scales(group); });
    Value minimum = once(Minimum + group, [&]() -> Value {
      return arith::NegFOp::create(b, loc, scales(8 + group));
    });
    if (hasTables(lanes) && !layout.top.bits) {
      Value numbers = once(Numbers + group, [&] {
        return exactProductPlus(scale, table([](int64_t i) { return float(i); }), minimum);
      });
      Value wide = once(Wide + 2 * pair + k % 32 / 16, [&] { return widened(part(all, k % 32)); });
      return lookedUp(numbers, group % 2 ? right(wide, 4) : wide);
    }
    if (widensWhatItLoads(lanes) && !layout.top.bits) {
      Value q = wideNibbles(layout.low.at + 32 * pair + k % 32, lanes, group % 2);
      return exactProductPlus(scale, floatsOf(q), minimum);
    }
    Value q = numbersOfBytes(32 * group, k % 32, /*isSigned=*/false, [&] {
      Value low = nibble(all, group % 2);
      if (!layout.top.bits)
        return low;
      Value fifth = once(FifthBits, [&] { return bytes(layout.top.at, 32); });
      Value placed = group < 4 ? left(fifth, 4 - group) : right(fifth, group - 4);
      return either(low, masked(placed, 16));
    });
    return exactProductPlus(scale, q, minimum);
  }
};

/// d s (q - 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16 of s,
/// d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the next
/// 32, and in the high halves of both; their high bits in one byte each.
class BlockQ6 : public NumbersOfBlock {
public:
  BlockQ6(OpBuilder &b, Location loc, xf::QuantizedType format, int64_t lanes, const Place &place)
      : NumbersOfBlock(b, loc, format, lanes, place) {
    keepScales([&] { return scalesOfQ6(); });
  }
  Value numbers(int64_t k) override {
    enum { Low, Top = Low + 4, Scale = Top + 2 };
    int64_t half = k / 128, quarter = k / 32 % 4, group = k / 16;
    Value q = numbersOfBytes(k / 32 * 32, k % 32, /*isSigned=*/true, [&] {
      int64_t which = 2 * half + quarter % 2;
      Value low = once(Low + which, [&] { return bytes(layout.low.at + 32 * which, 32); });
      Value top = once(Top + half, [&] { return bytes(layout.top.at + 32 * half, 32); });
      Value placed = quarter < 2 ? left(top, 4 - 2 * quarter) : quarter == 2 ? top : right(top, 2);
      return minus(either(nibble(low, quarter / 2), masked(placed, 48)), layout.zero);
    });
    Value scale = once(Scale + group, [&] { return scaleOf(group, [&] { return scalesOfQ6(); }); });
    return product(scale, q);
  }
};

} // namespace

bool BlockReader::reads(xf::QuantizedType format, int64_t columns) {
  return columns % elements(format) == 0;
}

bool BlockReader::hasScalesApart(xf::QuantizedType format) {
  return layoutOf(format).scale == blocks::Apart;
}

int64_t BlockReader::elements(xf::QuantizedType format) {
  return std::max<int64_t>(format.getBlockElements(), CTXC_SCALED_SPAN);
}

int64_t BlockReader::bytes(xf::QuantizedType format) {
  return elements(format) / format.getBlockElements() * format.getBlockBytes();
}

int64_t BlockReader::together(xf::QuantizedType format, int64_t lanes) {
  // The same 32 bytes hold 64 numbers, and stay in registers for so long.
  const blocks::Layout &layout = layoutOf(format);
  return layout.scale == blocks::SixBits && !layout.top.bits ? 64 : lanes;
}

std::unique_ptr<BlockReader> BlockReader::open(OpBuilder &b, Location loc, xf::QuantizedType format,
                                               int64_t lanes, const Place &place) {
  const blocks::Layout &layout = layoutOf(format);
  switch (layout.scale) {
  case blocks::Half:
    if (layout.numbers == blocks::Signed)
      return std::make_unique<BlockQ8>(b, loc, format, lanes, place);
    return std::make_unique<Block32>(b, loc, format, lanes, place);
  case blocks::SixBits:
    return std::make_unique<BlockK>(b, loc, format, lanes, place);
  case blocks::Bytes:
    return std::make_unique<BlockQ6>(b, loc, format, lanes, place);
  case blocks::PowerOfTwo:
    return std::make_unique<BlockMXFP4>(b, loc, format, lanes, place);
  case blocks::Apart:
    if (layout.numbers == blocks::E4M3)
      return std::make_unique<ScaledE4M3>(b, loc, format, lanes, place);
    return std::make_unique<ScaledE2M1>(b, loc, format, lanes, place);
  case blocks::Float:
    break;
  }
  llvm_unreachable("a format of a GPU's memory alone");
}
