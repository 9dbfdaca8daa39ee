// Blocks of 256 numbers (ByteBlock.h): the K formats.
#include "lib/Lowering/CPU/ByteSpan.h"
#include "lib/Lowering/StoredLayout.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Four or five bits. Of 32 bytes the low halves are a group, the high ones the next; of the fifth
/// bits, byte i has those of number i of all groups.
class SpanK : public ByteSpan {
public:
  using ByteSpan::ByteSpan;

  Value integers(int64_t i) override {
    int64_t width = place.width, first = i * width / blockGroup, each = std::min(width, blockGroup),
            within = i * width % blockGroup;
    Value stored = bytes(layout.low.at + first / 2 * 32 + within, each);
    SmallVector<Value> parts, fifths;
    SmallVector<int64_t> rights, fifthRights;
    for (int64_t group = first; group < first + std::max<int64_t>(1, width / blockGroup); ++group) {
      parts.push_back(stored);
      rights.push_back(group % 2 * 4);
      fifthRights.push_back(group - 4);
    }
    Value low = masked(moved(parts, rights), 15);
    if (!layout.top.bits)
      return low;
    fifths.append(parts.size(), bytes(layout.top.at + within, each));
    return either(low, masked(moved(fifths, fifthRights), 16));
  }
  /// Of 64 bytes the low halves are two groups, and the high ones two others.
  Value run(int64_t i) override {
    enum { Both, Low, High = Low + 2 };
    int64_t half = i / 2, first = 4 * half;
    auto fours = [&](int64_t isHigh) -> Value {
      Value stored = bytes(layout.low.at + 64 * half, 64);
      Value low = masked(moved(stored, 4 * isHigh), 15);
      if (!layout.top.bits)
        return low;
      Value fifths[] = {bytes(layout.top.at, 32), bytes(layout.top.at, 32)};
      return either(low, masked(moved(fifths, {first + isHigh - 4, first + isHigh - 2}), 16));
    };
    return eightsOf(once(Low + half, [&] { return fours(0); }),
                    once(High + half, [&] { return fours(1); }), i % 2,
                    {0, 2, 8, 10, 4, 6, 12, 14});
  }
  /// The low halves of a quarter of the bytes are groups 0, 2, 4 and 6.
  Value pieces(int64_t i) override {
    enum { First = 1, Fifths = First + 2 };
    int64_t isSecond = i % 2, isOdd = i / 2, at = layout.low.at;
    Value fours = once(First + isSecond, [&] {
      return eightsOf(once(~0, [&] { return bytes(at, 64); }),
                      once(~1, [&] { return bytes(at + 64, 64); }), 2 * isSecond,
                      {0, 1, 4, 5, 8, 9, 12, 13});
    });
    Value low = masked(moved(fours, 4 * isOdd), 15);
    if (!layout.top.bits)
      return low;
    // Of each word the bits of a group are turned to where the fifth ones belong.
    auto words = VectorType::get({16}, b.getI32Type());
    Value all = once(Fifths + isSecond, [&] {
      SmallVector<Value> four(4, bytes(layout.top.at + 16 * isSecond, 16));
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
};

/// Six bits (BlockReader.cpp has where they are).
class SpanQ6 : public ByteSpan {
public:
  using ByteSpan::ByteSpan;
  Value integers(int64_t i) override {
    int64_t width = place.width, from = i * width, half = from / 128, quarter = from / 32 % 4;
    int64_t each = std::min(width, blockGroup), within = from % blockGroup;
    bool isHigh = quarter / 2;
    Value low = nibble(bytes(layout.low.at + 64 * half + quarter % 2 * 32 + within, width), isHigh);
    SmallVector<Value> tops(std::max<int64_t>(1, width / blockGroup),
                            bytes(layout.top.at + 32 * half + within, each));
    SmallVector<int64_t> rights;
    for (size_t part = 0; part < tops.size(); ++part)
      rights.push_back(2 * (quarter + int64_t(part)) - 4);
    return either(low, masked(moved(tops, rights), 48));
  }
  Value scales() override { return scalesOfQ6(); }
};

} // namespace

std::unique_ptr<ByteBlock> ctxc::openBlockOf256(OpBuilder &b, Location loc,
                                                xf::QuantizedType format,
                                                const ByteBlock::Place &place) {
  if (layoutOf(format).scale == blocks::Bytes)
    return std::make_unique<SpanQ6>(b, loc, format, place);
  return std::make_unique<SpanK>(b, loc, format, place);
}
