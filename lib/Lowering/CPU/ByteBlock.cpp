#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/StoredBlock.h"

using namespace mlir;
using namespace ctxc;

namespace {

constexpr int64_t blockGroup = 32; ///< numbers of a small block
constexpr int64_t smallBlocks = ByteBlock::span / blockGroup;
constexpr int64_t widest = 64; ///< bytes of AVX-512's registers

class Span : public ByteBlock, protected StoredBlock {
public:
  Span(OpBuilder &b, Location loc, const Place &place)
      : StoredBlock(b, loc, place.address), place(place) {}

  Value run(int64_t i) override {
    auto integersAt = [&](int64_t at) { return once(~at, [&] { return integers(at); }); };
    return eightsOf(integersAt(i / 2 * 2), integersAt(i / 2 * 2 + 1), i % 2,
                    {0, 2, 4, 6, 8, 10, 12, 14});
  }

protected:
  /// Eights of the bytes of v and then w, `from` those that `order` names.
  Value eightsOf(Value v, Value w, int64_t from, SmallVector<int64_t> order) {
    auto eights = VectorType::get({8}, b.getI64Type());
    for (int64_t &at : order)
      at += from;
    Value all = shuffled(vector::BitCastOp::create(b, loc, eights, v),
                         vector::BitCastOp::create(b, loc, eights, w), order);
    return vector::BitCastOp::create(b, loc, v.getType(), all);
  }

  /// Vectors of one type, one after the other; a power of two of them.
  Value joined(ArrayRef<Value> parts) {
    SmallVector<Value> all(parts);
    while (all.size() > 1) {
      SmallVector<Value> pairs;
      for (size_t i = 0; i < all.size(); i += 2) {
        int64_t size = 2 * cast<VectorType>(all[i].getType()).getDimSize(0);
        SmallVector<int64_t> order(size);
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
  Value moved(ArrayRef<Value> parts, ArrayRef<int64_t> rights) {
    Value all = joined(parts);
    int64_t pairs = cast<VectorType>(all.getType()).getDimSize(0) / 2;
    if (llvm::all_of(rights, [](int64_t by) { return by == 0; }))
      return all;
    SmallVector<int16_t> by;
    for (int64_t i = 0; i < pairs; ++i)
      by.push_back(int16_t(std::abs(rights[i * rights.size() / pairs])));
    auto type = VectorType::get({pairs}, b.getI16Type());
    Value amount =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef<int16_t>(by)));
    Value wide = vector::BitCastOp::create(b, loc, type, all);
    bool isLeft = llvm::any_of(rights, [](int64_t r) { return r < 0; });
    wide = isLeft ? Value(arith::ShLIOp::create(b, loc, wide, amount))
                  : Value(arith::ShRUIOp::create(b, loc, wide, amount));
    return vector::BitCastOp::create(b, loc, all.getType(), wide);
  }

  VectorType floats(int64_t count) { return VectorType::get({count}, b.getF32Type()); }
  Value noBytes(int64_t count) { return zeros(VectorType::get({count}, b.getI8Type())); }

  /// What is shuffled into registers of 512 bits. It is a volatile load for these: LLVM would
  /// otherwise load the parts by themselves, or take them out of other loads bit by bit.
  Value whole(Type element, int64_t offset, int64_t count) {
    return LLVM::LoadOp::create(b, loc, VectorType::get({count}, element), at(offset),
                                /*alignment=*/1, /*isVolatile=*/place.width == widest);
  }
  Value wholeBytes(int64_t offset, int64_t count) { return whole(b.getI8Type(), offset, count); }

  /// One number of each small block, `offset` into it; 0 for blocks that are not there.
  Value ofBlocks(Type type, int64_t offset, int64_t stride) {
    SmallVector<Value> each;
    for (int64_t i = 0; i < smallBlocks; ++i)
      each.push_back(i < place.present
                         ? loaded(type, i * stride + offset)
                         : arith::ConstantOp::create(b, loc, b.getZeroAttr(type)).getResult());
    return vector::FromElementsOp::create(b, loc, VectorType::get({int64_t(each.size())}, type),
                                          each);
  }
  /// float16 of each small block, as float32. Shuffled out of registers of 512 bits, that takes
  /// fewer instructions than a load of each.
  Value halvesOfBlocks(int64_t offset, int64_t stride) {
    Type half = b.getF16Type();
    auto type = floats(smallBlocks);
    if (place.width < widest || place.present < smallBlocks)
      return arith::ExtFOp::create(b, loc, type, ofBlocks(half, offset, stride));
    // Lane i gets the half of block i, and each shuffle keeps what those before it have found.
    SmallVector<int64_t> from(widest / 2, vector::ShuffleOp::kPoisonIndex);
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
    return arith::ExtFOp::create(b, loc, type, lanesOf(all, 0, smallBlocks));
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

//===----------------------------------------------------------------------===//
// Blocks of 32
//===----------------------------------------------------------------------===//

/// 16 bytes with the first 16 elements in their low halves.
class HalvesSpan : public Span {
public:
  HalvesSpan(OpBuilder &b, Location loc, const Place &place, int64_t stride, int64_t bytesAt)
      : Span(b, loc, place), stride(stride), bytesAt(bytesAt) {}

protected:
  /// The bytes of four blocks.
  Value fourBlocks(int64_t first, int64_t step = 1) {
    SmallVector<Value> all;
    for (int64_t i = first; i < first + 4 * step; i += step)
      all.push_back(i < place.present ? wholeBytes(i * stride + bytesAt, 16) : noBytes(16));
    return joined(all);
  }
  Value foursOfPieces(int64_t i) {
    Value four = once(i / 2, [&] { return fourBlocks(i / 2, /*step=*/2); });
    return masked(moved(four, i % 2 * 4), 15);
  }
  Value fours(int64_t i) {
    if (place.width == 16)
      return i / 2 < place.present ? nibble(bytes(i / 2 * stride + bytesAt, 16), i % 2)
                                   : noBytes(16);
    SmallVector<Value> parts;
    SmallVector<int64_t> rights;
    for (int64_t block = i * place.width / blockGroup; block < (i + 1) * place.width / blockGroup;
         ++block) {
      Value all = block < place.present ? wholeBytes(block * stride + bytesAt, 16) : noBytes(16);
      parts.append(2, all);
      rights.append({0, 4});
    }
    return masked(moved(parts, rights), 15);
  }

  const int64_t stride;

private:
  const int64_t bytesAt;
};

class Span32 : public HalvesSpan {
public:
  Span32(OpBuilder &b, Location loc, const Place &place, int64_t stride, const Layout32 &layout)
      : HalvesSpan(b, loc, place, stride, layout.bytesAt), layout(layout) {}

  /// Without a fifth bit, the halves of four blocks' bytes are eights in turn.
  Value run(int64_t i) override {
    if (layout.fifthAt)
      return HalvesSpan::run(i);
    Value four = once(i / 2, [&] { return fourBlocks(i / 2 * 4); });
    enum { Low = 2, High = 4 };
    return eightsOf(once(Low + i / 2, [&] { return masked(four, 15); }),
                    once(High + i / 2, [&] { return masked(moved(four, 4), 15); }), i % 2,
                    {0, 8, 2, 10, 4, 12, 6, 14});
  }
  Value integers(int64_t i) override {
    Value low = fours(i);
    if (!layout.fifthAt)
      return low;
    // A bit for each byte, of one or two blocks, or of half a block.
    int64_t width = place.width, block = i * width / blockGroup;
    Type bits = b.getIntegerType(width), i32 = b.getI32Type();
    auto word = [&](int64_t of) -> Value {
      return of < place.present ? loaded(i32, of * stride + layout.fifthAt)
                                : arith::ConstantIntOp::create(b, loc, 0, 32).getResult();
    };
    Value all = word(block);
    if (width == 64) {
      Value next = left(arith::ExtUIOp::create(b, loc, bits, word(block + 1)), 32);
      all = either(arith::ExtUIOp::create(b, loc, bits, all), next);
    } else if (width == 16) {
      all = arith::TruncIOp::create(b, loc, bits, i % 2 ? right(all, 16) : all);
    }
    return withFifth(low, all);
  }
  Value pieces(int64_t i) override {
    Value low = foursOfPieces(i);
    if (!layout.fifthAt)
      return low;
    Type bits = b.getI64Type();
    Value all = arith::ConstantIntOp::create(b, loc, 0, 64);
    for (int64_t at = 0; at < 4; ++at) {
      int64_t block = i / 2 + 2 * at;
      if (block >= place.present)
        continue;
      Value sixteen = loaded(b.getI16Type(), block * stride + layout.fifthAt + i % 2 * 2);
      all = either(all, left(arith::ExtUIOp::create(b, loc, bits, sixteen), 16 * at));
    }
    return withFifth(low, all);
  }
  Value scales() override { return halvesOfBlocks(0, stride); }
  Value minima() override {
    return layout.minimumAt ? halvesOfBlocks(layout.minimumAt, stride) : Value();
  }

private:
  /// 16 more where a bit is set.
  Value withFifth(Value low, Value bits) {
    auto type = VectorType::get(cast<VectorType>(low.getType()).getShape(), b.getI1Type());
    Value isSet = LLVM::BitcastOp::create(b, loc, type, bits);
    if (place.width == widest) // an addition there adds to some lanes alone
      return arith::SelectOp::create(b, loc, isSet, plus(low, 16), low);
    return either(low, arith::SelectOp::create(b, loc, isSet, splat(low, 16), splat(low, 0)));
  }
  const Layout32 &layout;
};

/// Signed bytes. Where these are not multiplied as they are, the sign's bit is turned: 128 more.
class SpanQ8 : public Span {
public:
  using Span::Span;
  /// In pairs of 16 bits, products with 255 would have to be added one by one.
  static bool isSigned(ByteProducts products) { return products == ByteProducts::X86Pairs; }
  static constexpr int64_t stride = 34;
  Value integers(int64_t i) override {
    int64_t width = place.width, each = std::min(width, blockGroup);
    SmallVector<Value> parts;
    for (int64_t from = i * width; from < (i + 1) * width; from += each)
      parts.push_back(from / blockGroup < place.present
                          ? wholeBytes(from / blockGroup * stride + 2 + from % blockGroup, each)
                          : noBytes(each));
    Value all = joined(parts);
    if (isSigned(place.products))
      return all;
    return arith::XOrIOp::create(b, loc, all, splat(all, -128));
  }
  Value scales() override { return halvesOfBlocks(0, stride); }
};

/// Floats of four bits, and a byte 2^(e - 127) before them.
class SpanMXFP4 : public HalvesSpan {
public:
  SpanMXFP4(OpBuilder &b, Location loc, const Place &place)
      : HalvesSpan(b, loc, place, /*stride=*/17, /*bytesAt=*/1) {}
  Value integers(int64_t i) override { return looked(fours(i)); }
  Value pieces(int64_t i) override { return looked(foursOfPieces(i)); }
  Value scales() override { return powerOfTwo(ofBlocks(b.getI8Type(), 0, stride)); }
};

/// Bytes that have two floats of four bits each, the first in the low half; scales lie apart.
class SpanScaledE2M1 : public Span {
public:
  using Span::Span;
  Value integers(int64_t i) override {
    int64_t width = place.width, stored = width / 2, each = std::min(stored, blockGroup / 2);
    SmallVector<Value> parts;
    for (int64_t from = i * stored; from < (i + 1) * stored; from += each)
      parts.push_back(from / (blockGroup / 2) < place.present ? bytes(from, each) : noBytes(each));
    auto pairs = VectorType::get({stored}, b.getI16Type());
    Value wide = arith::ExtUIOp::create(b, loc, pairs, joined(parts));
    Value both = either(masked(wide, 15), masked(left(wide, 4), 0x0f00));
    return looked(vector::BitCastOp::create(b, loc, VectorType::get({width}, b.getI8Type()), both));
  }
  Value scales() override {
    SmallVector<Value> each;
    for (int64_t i = 0; i < span / blockGroup; ++i) {
      Value at = LLVM::GEPOp::create(b, loc, place.scales.getType(), b.getF32Type(), place.scales,
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
      each.push_back(i < place.present
                         ? LLVM::LoadOp::create(b, loc, b.getF32Type(), at).getResult()
                         : arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0)).getResult());
    }
    Value all = vector::FromElementsOp::create(b, loc, floats(span / blockGroup), each);
    auto half = DenseElementsAttr::get(floats(span / blockGroup), 0.5f); // exact
    return product(all, arith::ConstantOp::create(b, loc, half));
  }
};

//===----------------------------------------------------------------------===//
// Blocks of 256
//===----------------------------------------------------------------------===//

/// Four or five bits. Of 32 bytes the low halves are a group, the high ones the next; of the fifth
/// bits, byte i has those of number i of all groups.
class SpanK : public Span {
public:
  SpanK(OpBuilder &b, Location loc, const Place &place, bool hasFifth)
      : Span(b, loc, place), hasFifth(hasFifth) {}

  Value integers(int64_t i) override {
    int64_t width = place.width, first = i * width / blockGroup, each = std::min(width, blockGroup),
            within = i * width % blockGroup;
    Value stored = bytes((hasFifth ? 48 : 16) + first / 2 * 32 + within, each);
    SmallVector<Value> parts, fifths;
    SmallVector<int64_t> rights, fifthRights;
    for (int64_t group = first; group < first + std::max<int64_t>(1, width / blockGroup); ++group) {
      parts.push_back(stored);
      rights.push_back(group % 2 * 4);
      fifthRights.push_back(group - 4);
    }
    Value low = masked(moved(parts, rights), 15);
    if (!hasFifth)
      return low;
    fifths.append(parts.size(), bytes(16 + within, each));
    return either(low, masked(moved(fifths, fifthRights), 16));
  }
  /// Of 64 bytes the low halves are two groups, and the high ones two others.
  Value run(int64_t i) override {
    enum { Both, Low, High = Low + 2 };
    int64_t half = i / 2, first = 4 * half;
    auto fours = [&](int64_t isHigh) -> Value {
      Value stored = bytes((hasFifth ? 48 : 16) + 64 * half, 64);
      Value low = masked(moved(stored, 4 * isHigh), 15);
      if (!hasFifth)
        return low;
      Value fifths[] = {bytes(16, 32), bytes(16, 32)};
      return either(low, masked(moved(fifths, {first + isHigh - 4, first + isHigh - 2}), 16));
    };
    return eightsOf(once(Low + half, [&] { return fours(0); }),
                    once(High + half, [&] { return fours(1); }), i % 2,
                    {0, 2, 8, 10, 4, 6, 12, 14});
  }
  /// The low halves of a quarter of the bytes are groups 0, 2, 4 and 6.
  Value pieces(int64_t i) override {
    enum { First = 1, Fifths = First + 2 };
    int64_t isSecond = i % 2, isOdd = i / 2, at = hasFifth ? 48 : 16;
    Value fours = once(First + isSecond, [&] {
      return eightsOf(once(~0, [&] { return bytes(at, 64); }),
                      once(~1, [&] { return bytes(at + 64, 64); }), 2 * isSecond,
                      {0, 1, 4, 5, 8, 9, 12, 13});
    });
    Value low = masked(moved(fours, 4 * isOdd), 15);
    if (!hasFifth)
      return low;
    // Of each word the bits of a group are turned to where the fifth ones belong.
    auto words = VectorType::get({16}, b.getI32Type());
    Value all = once(Fifths + isSecond, [&] {
      SmallVector<Value> four(4, bytes(16 + 16 * isSecond, 16));
      return vector::BitCastOp::create(b, loc, words, joined(four));
    });
    SmallVector<int32_t> rights;
    for (int64_t lane = 0; lane < 16; ++lane)
      rights.push_back(int32_t(2 * (lane / 4) + isOdd + 28) % 32);
    Value by =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, ArrayRef<int32_t>(rights)));
    Value turned = LLVM::FshrOp::create(b, loc, all, all, by);
    return either(low, masked(vector::BitCastOp::create(b, loc, low.getType(), turned), 16));
  }
  Value scales() override { return lanesOf(both(), 0, 8); }
  Value minima() override { return arith::NegFOp::create(b, loc, lanesOf(both(), 8, 8)); }

private:
  Value both() {
    return once(0, [&] { return scalesOfK(); });
  }
  bool hasFifth;
};

/// Six bits (BlockReader.cpp has where they are).
class SpanQ6 : public Span {
public:
  using Span::Span;
  Value integers(int64_t i) override {
    int64_t width = place.width, from = i * width, half = from / 128, quarter = from / 32 % 4;
    int64_t each = std::min(width, blockGroup), within = from % blockGroup;
    bool isHigh = quarter / 2;
    Value low = nibble(bytes(64 * half + quarter % 2 * 32 + within, width), isHigh);
    SmallVector<Value> tops(std::max<int64_t>(1, width / blockGroup),
                            bytes(128 + 32 * half + within, each));
    SmallVector<int64_t> rights;
    for (size_t part = 0; part < tops.size(); ++part)
      rights.push_back(2 * (quarter + int64_t(part)) - 4);
    return either(low, masked(moved(tops, rights), 48));
  }
  Value scales() override { return scalesOfQ6(); }
};

} // namespace

ByteBlock::Shape ByteBlock::shapeOf(xf::QuantizedType format, ByteProducts products) {
  switch (format.getFormat()) {
  case xf::BlockFormat::q4_0:
    return {8, 3, false, {15}};
  case xf::BlockFormat::q4_1:
    return {8, -1, true, {15}};
  case xf::BlockFormat::q5_0:
    return {8, 4, false, {31}};
  case xf::BlockFormat::q5_1:
    return {8, -1, true, {31}};
  case xf::BlockFormat::q8_0:
    return SpanQ8::isSigned(products) ? Shape{8, -1, false, {128, /*isSigned=*/true}}
                                      : Shape{8, 7, false, {255}};
  case xf::BlockFormat::q4_k:
    return {8, -1, true, {15}};
  case xf::BlockFormat::q5_k:
    return {8, -1, true, {31}};
  case xf::BlockFormat::q6_k:
    return {16, 5, false, {63}};
  case xf::BlockFormat::block_mxfp4:
  case xf::BlockFormat::mxfp4:
    return {8, 4, false, {28}};
  case xf::BlockFormat::f8e4m3:
    break;
  }
  llvm_unreachable("a format without integers");
}

Value ByteBlock::pieces(int64_t) { llvm_unreachable("a format without pieces"); }

bool ByteBlock::hasPieces(xf::QuantizedType format) {
  switch (format.getFormat()) {
  case xf::BlockFormat::q4_0:
  case xf::BlockFormat::q4_1:
  case xf::BlockFormat::q5_0:
  case xf::BlockFormat::q5_1:
  case xf::BlockFormat::q4_k:
  case xf::BlockFormat::q5_k:
  case xf::BlockFormat::block_mxfp4:
    return true;
  default:
    return false;
  }
}

bool ByteBlock::reads(xf::QuantizedType format, int64_t columns) {
  return columns % std::max(format.getBlockElements(), blockGroup) == 0;
}

std::unique_ptr<ByteBlock> ByteBlock::open(OpBuilder &b, Location loc, xf::QuantizedType format,
                                           const Place &place) {
  auto of32 = [&](const Layout32 &layout) {
    return std::make_unique<Span32>(b, loc, place, format.getBlockBytes(), layout);
  };
  switch (format.getFormat()) {
  case xf::BlockFormat::q4_0:
    return of32(layoutQ4_0);
  case xf::BlockFormat::q4_1:
    return of32(layoutQ4_1);
  case xf::BlockFormat::q5_0:
    return of32(layoutQ5_0);
  case xf::BlockFormat::q5_1:
    return of32(layoutQ5_1);
  case xf::BlockFormat::q8_0:
    return std::make_unique<SpanQ8>(b, loc, place);
  case xf::BlockFormat::q4_k:
    return std::make_unique<SpanK>(b, loc, place, /*hasFifth=*/false);
  case xf::BlockFormat::q5_k:
    return std::make_unique<SpanK>(b, loc, place, /*hasFifth=*/true);
  case xf::BlockFormat::q6_k:
    return std::make_unique<SpanQ6>(b, loc, place);
  case xf::BlockFormat::block_mxfp4:
    return std::make_unique<SpanMXFP4>(b, loc, place);
  case xf::BlockFormat::mxfp4:
    return std::make_unique<SpanScaledE2M1>(b, loc, place);
  case xf::BlockFormat::f8e4m3:
    break;
  }
  llvm_unreachable("a format without integers");
}
