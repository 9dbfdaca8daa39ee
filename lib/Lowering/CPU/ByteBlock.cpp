#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/ByteSpan.h"
#include "lib/Lowering/StoredLayout.h"

using namespace mlir;
using namespace ctxc;

//===----------------------------------------------------------------------===//
// Blocks of 32
//===----------------------------------------------------------------------===//

namespace {

/// 16 bytes with the first 16 elements in their low halves.
class HalvesSpan : public ByteSpan {
public:
  using ByteSpan::ByteSpan;

protected:
  /// The bytes of four blocks.
  Value fourBlocks(int64_t first, int64_t step = 1) {
    SmallVector<Value> all;
    for (int64_t i = first; i < first + 4 * step; i += step)
      all.push_back(i < place.present ? wholeBytes(i * layout.bytes + layout.low.at, 16)
                                      : noBytes(16));
    return joined(all);
  }
  Value foursOfPieces(int64_t i) {
    Value four = once(i / 2, [&] { return fourBlocks(i / 2, /*step=*/2); });
    return masked(moved(four, i % 2 * 4), 15);
  }
  Value fours(int64_t i) {
    if (place.width == 16)
      return i / 2 < place.present ? nibble(bytes(i / 2 * layout.bytes + layout.low.at, 16), i % 2)
                                   : noBytes(16);
    SmallVector<Value> parts;
    SmallVector<int64_t> rights;
    for (int64_t block = i * place.width / blockGroup; block < (i + 1) * place.width / blockGroup;
         ++block) {
      Value all = block < place.present ? wholeBytes(block * layout.bytes + layout.low.at, 16)
                                        : noBytes(16);
      parts.append(2, all);
      rights.append({0, 4});
    }
    return masked(moved(parts, rights), 15);
  }
};

class Span32 : public HalvesSpan {
public:
  using HalvesSpan::HalvesSpan;

  /// Without a fifth bit, the halves of four blocks' bytes are eights in turn.
  Value run(int64_t i) override {
    if (layout.top.bits)
      return HalvesSpan::run(i);
    Value four = once(i / 2, [&] { return fourBlocks(i / 2 * 4); });
    enum { Low = 2, High = 4 };
    return eightsOf(once(Low + i / 2, [&] { return masked(four, 15); }),
                    once(High + i / 2, [&] { return masked(moved(four, 4), 15); }), i % 2,
                    {0, 8, 2, 10, 4, 12, 6, 14});
  }
  Value integers(int64_t i) override {
    Value low = fours(i);
    if (!layout.top.bits)
      return low;
    // A bit for each byte, of one or two blocks, or of half a block.
    int64_t width = place.width, block = i * width / blockGroup;
    Type bits = b.getIntegerType(width), i32 = b.getI32Type();
    auto word = [&](int64_t of) -> Value {
      return of < place.present ? loaded(i32, of * layout.bytes + layout.top.at)
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
    if (!layout.top.bits)
      return low;
    Type bits = b.getI64Type();
    Value all = arith::ConstantIntOp::create(b, loc, 0, 64);
    for (int64_t at = 0; at < 4; ++at) {
      int64_t block = i / 2 + 2 * at;
      if (block >= place.present)
        continue;
      Value sixteen = loaded(b.getI16Type(), block * layout.bytes + layout.top.at + i % 2 * 2);
      all = either(all, left(arith::ExtUIOp::create(b, loc, bits, sixteen), 16 * at));
    }
    return withFifth(low, all);
  }
  Value scales() override { return halvesOfBlocks(layout.scaleAt); }
  Value minima() override { return layout.minimumAt ? halvesOfBlocks(layout.minimumAt) : Value(); }

private:
  /// 16 more where a bit is set.
  Value withFifth(Value low, Value bits) {
    auto type = VectorType::get(cast<VectorType>(low.getType()).getShape(), b.getI1Type());
    Value isSet = LLVM::BitcastOp::create(b, loc, type, bits);
    if (place.width == widest) // an addition there adds to some lanes alone
      return arith::SelectOp::create(b, loc, isSet, plus(low, 16), low);
    return either(low, arith::SelectOp::create(b, loc, isSet, splat(low, 16), splat(low, 0)));
  }
};

/// Signed bytes. Where these are not multiplied as they are, the sign's bit is turned: 128 more.
class SpanQ8 : public ByteSpan {
public:
  using ByteSpan::ByteSpan;
  /// In pairs of 16 bits, products with 255 would have to be added one by one.
  static bool isSigned(ByteProducts products) { return products == ByteProducts::X86Pairs; }
  Value integers(int64_t i) override {
    int64_t width = place.width, each = std::min(width, blockGroup);
    SmallVector<Value> parts;
    for (int64_t from = i * width; from < (i + 1) * width; from += each)
      parts.push_back(
          from / blockGroup < place.present
              ? wholeBytes(from / blockGroup * layout.bytes + layout.low.at + from % blockGroup,
                           each)
              : noBytes(each));
    Value all = joined(parts);
    if (isSigned(place.products))
      return all;
    return arith::XOrIOp::create(b, loc, all, splat(all, -128));
  }
  Value scales() override { return halvesOfBlocks(layout.scaleAt); }
};

/// Floats of four bits, and a byte 2^(e - 127) before them.
class SpanMXFP4 : public HalvesSpan {
public:
  using HalvesSpan::HalvesSpan;
  Value integers(int64_t i) override { return looked(fours(i)); }
  Value pieces(int64_t i) override { return looked(foursOfPieces(i)); }
  Value scales() override { return powerOfTwo(ofBlocks(b.getI8Type(), layout.scaleAt)); }
};

/// Bytes that have two floats of four bits each, the first in the low half; scales lie apart.
class SpanScaledE2M1 : public ByteSpan {
public:
  using ByteSpan::ByteSpan;
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

} // namespace

ByteBlock::Shape ByteBlock::shapeOf(xf::QuantizedType format, ByteProducts products) {
  const blocks::Layout &layout = layoutOf(format);
  Shape shape{span / layout.group(),
              layout.zero ? int64_t(llvm::Log2_64(layout.zero)) : -1,
              layout.minimumAt != 0,
              {(1 << layout.bits()) - 1}};
  shape.hasPieces = layout.low.bits == 4 && layout.low.apart >= 16 && layout.group() == 32;
  if (layout.numbers == blocks::E2M1) { // 16 more than twice the number, of which 12 is the largest
    shape.zeroBits = 4;
    shape.range.largest = 28;
  } else if (layout.numbers == blocks::Signed) {
    shape.zeroBits = SpanQ8::isSigned(products) ? -1 : 7;
    if (SpanQ8::isSigned(products))
      shape.range = {128, /*isSigned=*/true};
  }
  return shape;
}

Value ByteBlock::pieces(int64_t) { llvm_unreachable("a format without pieces"); }

bool ByteBlock::reads(xf::QuantizedType format, int64_t columns) {
  return columns % std::max(format.getBlockElements(), ByteSpan::blockGroup) == 0;
}

std::unique_ptr<ByteBlock> ByteBlock::open(OpBuilder &b, Location loc, xf::QuantizedType format,
                                           const Place &place) {
  const blocks::Layout &layout = layoutOf(format);
  switch (layout.scale) {
  case blocks::Half:
    if (layout.numbers == blocks::Signed)
      return std::make_unique<SpanQ8>(b, loc, format, place);
    return std::make_unique<Span32>(b, loc, format, place);
  case blocks::SixBits:
  case blocks::Bytes:
    return openBlockOf256(b, loc, format, place);
  case blocks::PowerOfTwo:
    return std::make_unique<SpanMXFP4>(b, loc, format, place);
  case blocks::Apart:
    if (layout.numbers == blocks::E2M1)
      return std::make_unique<SpanScaledE2M1>(b, loc, format, place);
    break;
  case blocks::Float:
    break;
  }
  llvm_unreachable("a format without integers");
}
