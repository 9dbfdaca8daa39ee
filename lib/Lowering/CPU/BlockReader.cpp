// Integers are taken apart as bytes, of which a register holds most, and widened last. What several
// numbers share, such as a block's scales, is emitted where it is first needed.
#include "lib/Lowering/CPU/BlockReader.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ctxc;

namespace {

class StoredBlock : public BlockReader, protected LoopBuilder {
public:
  StoredBlock(OpBuilder &b, Location loc, int64_t lanes, Value address)
      : LoopBuilder(b, loc), lanes(lanes), address(address) {}

protected:
  VectorType bytesType(int64_t count) { return VectorType::get({count}, b.getI8Type()); }
  VectorType floats(int64_t count) { return VectorType::get({count}, b.getF32Type()); }

  Value at(int64_t offset) {
    return LLVM::GEPOp::create(b, loc, address.getType(), b.getI8Type(), address,
                               ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }
  Value loaded(Type type, int64_t offset) {
    return LLVM::LoadOp::create(b, loc, type, at(offset), /*alignment=*/1);
  }
  Value bytes(int64_t offset, int64_t count) { return loaded(bytesType(count), offset); }

  Value splat(Value like, int64_t number) {
    auto type = cast<VectorType>(like.getType());
    return arith::ConstantOp::create(
        b, loc, SplatElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), number)));
  }
  Value masked(Value v, int64_t bits) { return arith::AndIOp::create(b, loc, v, splat(v, bits)); }
  Value right(Value v, int64_t by) { return arith::ShRUIOp::create(b, loc, v, splat(v, by)); }
  Value left(Value v, int64_t by) { return arith::ShLIOp::create(b, loc, v, splat(v, by)); }
  Value either(Value v, Value w) { return arith::OrIOp::create(b, loc, v, w); }
  Value minus(Value v, int64_t number) {
    return arith::SubIOp::create(b, loc, v, splat(v, number));
  }
  /// The four bits of each byte.
  Value nibble(Value v, bool isHigh) { return isHigh ? right(v, 4) : masked(v, 15); }

  /// `lanes` of a vector, from `from` on.
  Value part(Value v, int64_t from) {
    if (cast<VectorType>(v.getType()).getDimSize(0) == lanes)
      return v;
    return vector::ExtractStridedSliceOp::create(b, loc, v, ArrayRef<int64_t>{from},
                                                 ArrayRef<int64_t>{lanes}, ArrayRef<int64_t>{1});
  }
  /// Bytes as float32, exactly.
  Value numbersOf(Value v, bool isSigned) {
    int64_t count = cast<VectorType>(v.getType()).getDimSize(0);
    auto wide = VectorType::get({count}, b.getI32Type());
    Value integers = isSigned ? Value(arith::ExtSIOp::create(b, loc, wide, v))
                              : Value(arith::ExtUIOp::create(b, loc, wide, v));
    return arith::SIToFPOp::create(b, loc, floats(count), integers);
  }
  Value product(Value v, Value w) { return arith::MulFOp::create(b, loc, v, w); }

  /// `count` float16 from `offset` on, as float32.
  Value halves(int64_t offset, int64_t count) {
    Value v = loaded(VectorType::get({count}, b.getF16Type()), offset);
    return arith::ExtFOp::create(b, loc, floats(count), v);
  }
  Value inAllLanes(Value number) {
    return vector::BroadcastOp::create(b, loc, floats(lanes), number);
  }
  /// Entry i of a vector, in `count` lanes.
  Value repeated(Value v, int64_t i, int64_t count) {
    return vector::ShuffleOp::create(b, loc, v, v, SmallVector<int64_t>(count, i));
  }

  /// What `make` emits, once for each key.
  Value once(int64_t key, llvm::function_ref<Value()> make) {
    Value &known = shared[key];
    if (!known)
      known = make();
    return known;
  }

  int64_t lanes;

private:
  Value address;
  llvm::MapVector<int64_t, Value> shared;
};

//===----------------------------------------------------------------------===//
// 32 elements: the first 16 in the low halves of 16 bytes, the others in the high ones
//===----------------------------------------------------------------------===//

/// d (q - zero) or d q + m: d, then m, the fifth bits as one word, and 16 bytes.
struct Layout32 {
  int64_t minimumAt, fifthAt, bytesAt; ///< 0 where there is none
  int64_t zero;
};
constexpr Layout32 layoutQ4_0 = {0, 0, 2, 8}, layoutQ4_1 = {2, 0, 4, 0}, layoutQ5_0 = {0, 2, 6, 16},
                   layoutQ5_1 = {2, 4, 8, 0};

class Block32 : public StoredBlock {
public:
  Block32(OpBuilder &b, Location loc, int64_t lanes, Value address, const Layout32 &layout)
      : StoredBlock(b, loc, lanes, address), layout(layout) {}

  Value numbers(int64_t k) override {
    enum { Bytes, Half, Scale = Half + 2, Minimum, Fifth };
    Value all = once(Bytes, [&] { return bytes(layout.bytesAt, 16); });
    Value half = once(Half + k / 16, [&] { return nibble(all, k / 16); });
    auto wide = VectorType::get({lanes}, b.getI32Type());
    Value q = arith::ExtUIOp::create(b, loc, wide, part(half, k % 16));
    if (layout.fifthAt) {
      Value fifth = once(Fifth, [&] {
        return vector::BroadcastOp::create(b, loc, wide, loaded(b.getI32Type(), layout.fifthAt));
      });
      q = either(q, fifthBits(fifth, k));
    }
    if (layout.zero)
      q = minus(q, layout.zero);
    Value scale = once(Scale, [&] { return shared16(0); });
    Value scaled = product(scale, arith::SIToFPOp::create(b, loc, floats(lanes), q));
    if (!layout.minimumAt)
      return scaled;
    Value minimum = once(Minimum, [&] { return shared16(layout.minimumAt); });
    return arith::AddFOp::create(b, loc, scaled, minimum);
  }

private:
  Value shared16(int64_t offset) { return repeated(halves(offset, 1), 0, lanes); }

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
class BlockQ8 : public StoredBlock {
public:
  using StoredBlock::StoredBlock;
  Value numbers(int64_t k) override {
    Value scale = once(0, [&] { return repeated(halves(0, 1), 0, lanes); });
    return product(scale, numbersOf(bytes(2 + k, lanes), /*isSigned=*/true));
  }
};

/// Floats of four bits: sign, two bits of exponent, one of fraction.
class BlockE2M1 : public StoredBlock {
public:
  using StoredBlock::StoredBlock;

protected:
  /// Twice the number: the sign and 0, 1, 2, 3, 4, 6, 8 or 12. Above 4 the step is 2, above 8 it is
  /// 4.
  Value twice(Value q) {
    Value m = masked(q, 7), zero = splat(q, 0);
    auto beyond = [&](int64_t n) { return arith::MaxSIOp::create(b, loc, minus(m, n), zero); };
    Value h = arith::AddIOp::create(b, loc, m, beyond(4));
    h = arith::AddIOp::create(b, loc, h, left(beyond(6), 1));
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, q, splat(q, 8));
    return arith::SelectOp::create(b, loc, isNegative, arith::SubIOp::create(b, loc, zero, h), h);
  }
};

/// 2^(e - 128) times twice the number: e, 16 bytes.
class BlockMXFP4 : public BlockE2M1 {
public:
  using BlockE2M1::BlockE2M1;
  Value numbers(int64_t k) override {
    enum { Scale, Bytes, Half };
    Value scale = once(Scale, [&] { return powerOfTwo(loaded(b.getI8Type(), 0)); });
    Value all = once(Bytes, [&] { return bytes(1, 16); });
    Value half = once(Half + k / 16, [&] { return twice(nibble(all, k / 16)); });
    return product(scale, numbersOf(part(half, k % 16), /*isSigned=*/true));
  }

private:
  /// 2^(e - 128); the smallest two are no normal numbers.
  Value powerOfTwo(Value e) {
    auto number = [&](int64_t n) { return arith::ConstantIntOp::create(b, loc, n, 32); };
    e = arith::ExtUIOp::create(b, loc, b.getI32Type(), e);
    Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, e, number(2));
    Value small = arith::ShLIOp::create(b, loc, number(0x00200000), e);
    Value normal =
        arith::ShLIOp::create(b, loc, arith::SubIOp::create(b, loc, e, number(1)), number(23));
    Value bits = arith::SelectOp::create(b, loc, isSmall, small, normal);
    return inAllLanes(arith::BitcastOp::create(b, loc, b.getF32Type(), bits));
  }
};

//===----------------------------------------------------------------------===//
// 32 elements whose scale is given
//===----------------------------------------------------------------------===//

/// 16 bytes, of which each has two numbers, the first in the low half.
class ScaledE2M1 : public BlockE2M1 {
public:
  ScaledE2M1(OpBuilder &b, Location loc, int64_t lanes, Value address, Value scale)
      : BlockE2M1(b, loc, lanes, address), scale(scale) {}
  Value numbers(int64_t k) override {
    enum { Scale, Doubles };
    Value halved = once(Scale, [&] { // exact: the scale is a power of two
      Value half = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.5f));
      return inAllLanes(arith::MulFOp::create(b, loc, scale, half));
    });
    Value all = once(Doubles, [&] {
      Value pairs = bytes(0, 16);
      return twice(vector::InterleaveOp::create(b, loc, nibble(pairs, false), nibble(pairs, true)));
    });
    return product(numbersOf(part(all, k), /*isSigned=*/true), halved);
  }

private:
  Value scale;
};

/// Bytes: sign, four bits of exponent, three of fraction. Moved to their places in a float16 they
/// are the number by 2^-8, also where it is subnormal. Seven ones are NaN.
class ScaledE4M3 : public StoredBlock {
public:
  ScaledE4M3(OpBuilder &b, Location loc, int64_t lanes, Value address, Value scale)
      : StoredBlock(b, loc, lanes, address), scale(scale) {}
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
class BlockK : public StoredBlock {
public:
  BlockK(OpBuilder &b, Location loc, int64_t lanes, Value address, bool hasFifth)
      : StoredBlock(b, loc, lanes, address), hasFifth(hasFifth) {}

  Value numbers(int64_t k) override {
    enum {
      Scales,
      FifthBits,
      Bytes,
      Integers = Bytes + 4,
      Scale = Integers + 8,
      Minimum = Scale + 8
    };
    int64_t pair = k / 64, group = k / 32;
    Value all = once(Bytes + pair, [&] { return bytes((hasFifth ? 48 : 16) + 32 * pair, 32); });
    Value q = once(Integers + group, [&] {
      Value low = nibble(all, group % 2);
      if (!hasFifth)
        return low;
      Value fifth = once(FifthBits, [&] { return bytes(16, 32); });
      Value placed = group < 4 ? left(fifth, 4 - group) : right(fifth, group - 4);
      return either(low, masked(placed, 16));
    });
    Value both = once(Scales, [&] { return scales(); });
    Value scale = once(Scale + group, [&] { return repeated(both, group, lanes); });
    Value minimum = once(Minimum + group, [&] { return repeated(both, 8 + group, lanes); });
    return arith::SubFOp::create(
        b, loc, product(scale, numbersOf(part(q, k % 32), /*isSigned=*/false)), minimum);
  }

private:
  /// d s for each 32, then e t. The first four of s and t lie in the low six bits of bytes 0 to 3
  /// and 4 to 7; the others have their low four bits in bytes 8 to 11, and the high two on top of
  /// the first four's.
  Value scales() {
    Value twelve = bytes(4, 16); // four more are there, and not used
    auto picked = [&](Value v, Value w, ArrayRef<int64_t> from) {
      return vector::ShuffleOp::create(b, loc, v, w, from);
    };
    Value low = picked(twelve, twelve, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11});
    Value top = picked(twelve, twelve, {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7});
    // The last four have their low bits in the high halves.
    low = picked(low, right(low, 4), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28, 29, 30, 31});
    auto fourEach = [&](int8_t first, int8_t others) {
      SmallVector<int8_t> all;
      for (int64_t i = 0; i < 16; ++i)
        all.push_back(i / 4 % 2 ? others : first);
      auto values = DenseElementsAttr::get(bytesType(16), ArrayRef<int8_t>(all));
      return arith::ConstantOp::create(b, loc, values);
    };
    Value bits = either(arith::AndIOp::create(b, loc, low, fourEach(63, 15)),
                        arith::AndIOp::create(b, loc, right(top, 2), fourEach(0, 48)));
    SmallVector<int64_t> eightEach(16, 0);
    std::fill(eightEach.begin() + 8, eightEach.end(), 1);
    Value two = halves(0, 2);
    return product(vector::ShuffleOp::create(b, loc, two, two, eightEach),
                   numbersOf(bits, /*isSigned=*/false));
  }

  bool hasFifth;
};

/// d s (q - 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16 of s,
/// d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the next
/// 32, and in the high halves of both; their high bits in one byte each.
class BlockQ6 : public StoredBlock {
public:
  using StoredBlock::StoredBlock;
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
    Value all = once(Scales, [&] {
      return product(repeated(halves(208, 1), 0, 16), numbersOf(bytes(192, 16), /*isSigned=*/true));
    });
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
