#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "lib/Lowering/StoredLayout.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

/// Decodes numbers of one group. Integers are i32, and so are places, which are bytes from `base`
/// on.
class Decoder : WordWriter {
public:
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value group)
      : WordWriter(w), words(words), layout(deviceLayoutOf(type)), whole(layout.bytes % 4 == 0) {
    Value groups = w.index(layout.elements / 4);
    Value byte =
        w.times(arith::DivUIOp::create(w.b, w.loc, group, groups), fixedExtent(layout.bytes));
    base = arith::ShRUIOp::create(w.b, w.loc, byte, w.index(2));
    block = whole ? number(0) : both(toI32(byte), 3);
    first = toI32(w.times(arith::RemUIOp::create(w.b, w.loc, group, groups), fixedExtent(4)));
  }
  /// The group of number `at` + `more`, which have no bit in common, of a span that begins with a
  /// block at word `base`.
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value base, Value at, int64_t more)
      : WordWriter(w), words(words), layout(deviceLayoutOf(type)), whole(layout.bytes % 4 == 0),
        base(base) {
    if (isFourBits())
      part = more / 16 % 2;
    const int64_t elements = layout.elements, bytes = layout.bytes;
    block = times(right(at, llvm::Log2_64(elements)), bytes);
    before = more / elements * bytes;
    first = either(both(at, elements - 1), number(more % elements));
  }

  /// The scales of the group: one number, or one and what is added or subtracted.
  SmallVector<Value> scales();
  /// The group's numbers before they are scaled, in a byte each.
  Value stored();
  /// The float32 of each number i of the group.
  SmallVector<Value> numbers(ValueRange in, Value stored, ArrayRef<Value> scales);

private:
  // Bytes of the block
  Value place(Value offset, int64_t more) {
    Value at = before % 4 ? plus(block, before) : block;
    return offset ? plus(plus(at, offset), more) : plus(at, more);
  }
  Value inWord(Value place) { return left(both(place, 3), 3); }
  /// The word in which `place` lies, or the one that is `more` words behind it.
  Value loadWord(Value place, Value more = {}) {
    Value i = right(place, 2);
    i = arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), more ? plus(i, more) : i);
    Value start = before % 4 || !before ? base : w.add(base, w.index(before / 4));
    return memref::LoadOp::create(w.b, w.loc, words, ValueRange{w.add(start, i)});
  }
  /// Four bytes from `offset` + `more` on; `offset` is a multiple of four.
  Value fourBytes(Value offset, int64_t more) {
    Value at = place(offset, more), low = loadWord(at);
    if (whole && more % 4 == 0)
      return low;
    // The word behind the last one is not there; nothing of it is used then.
    Value shift = inWord(at);
    Value crosses = arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ne, shift, number(0));
    Value next = loadWord(at, choose(crosses, number(1), number(0)));
    if (w.target.selectsBytes())
      return w.target.selectBytes(w.b, w.loc, low, next, plus(times(both(at, 3), 0x1111), 0x3210));
    Value high = left(left(next, 1), arith::SubIOp::create(w.b, w.loc, number(31), shift));
    return choose(crosses, either(right(low, shift), high), low);
  }
  Value byteAt(Value offset, int64_t more) {
    Value at = place(offset, more);
    return both(right(loadWord(at), inWord(at)), 255);
  }
  /// The float16 in two bytes, which lie in one word.
  Value half(int64_t more) {
    Value at = place({}, more), bits = right(loadWord(at), inWord(at));
    Value sign = left(both(bits, 0x8000), 16), exponent = both(right(bits, 10), 31);
    Value fraction = both(bits, 0x3ff), wide = left(fraction, 13);
    Value common = either(left(plus(exponent, 112), 23), wide);
    Value infinite = either(number(0x7f800000), wide);
    Value small = arith::BitcastOp::create(w.b, w.loc, w.b.getI32Type(),
                                           product(toFloat(fraction), constant(0x1p-24f)));
    Value magnitude = choose(isLess(exponent, 31), common, infinite);
    return fromBits(either(sign, choose(isLess(exponent, 1), small, magnitude)));
  }

  // Formats
  /// Bits of each of the group's numbers, in the lowest of a byte each.
  Value bitsOf(const blocks::BitPlane &plane) {
    if (plane.together() == 1)
      return fourBytes(first, plane.at);
    if (plane.apart == 1) { // four in a row, of one bit
      Value four = both(right(fourBytes({}, plane.at), first), 15);
      // The bits of a product with 1 + 2⁷ + 2¹⁴ + 2²¹ do not overlap.
      return both(times(four, 1 | 1 << 7 | 1 << 14 | 1 << 21), 0x01010101);
    }
    const int64_t apart = plane.apart, together = plane.together();
    Value at = both(first, apart - 1);
    if (apart * together < layout.elements)
      at = plus(left(right(first, llvm::Log2_64(apart * together)), llvm::Log2_64(apart)), at);
    Value four = fourBytes(at, plane.at);
    Value by = right(both(first, apart * (together - 1)),
                     llvm::Log2_64(apart) - llvm::Log2_64(plane.bits));
    return both(right(four, by), 0x01010101 * ((1 << plane.bits) - 1));
  }
  /// 128 plus byte i of four, which is below 128: the byte is the first bits of a float32 behind
  /// those of 2⁷. Of eight bits, 2¹⁵ plus the byte.
  Value raised(Value four, Value i) {
    bool isWide = layout.bits() == 8;
    int64_t power = isWide ? 0x47 : 0x43, behind = isWide ? 8 : 16;
    auto constant = getConstantIntValue(i);
    if (constant && w.target.selectsBytes()) {
      int64_t selector = isWide ? 0x4505 | *constant << 4 : 0x4055 | *constant << 8;
      return fromBits(w.target.selectBytes(w.b, w.loc, four, number(power), number(selector)));
    }
    return fromBits(either(left(byteOf(four, i), behind), number(power << 24)));
  }
  /// The scale times byte i of four less `zero`. Both forms round once: the constant has so few
  /// bits that its product with a scale is exact, but for a power of two out of float32's range.
  Value scaled(Value scale, Value four, Value i, int64_t zero) {
    float above = zero + (layout.bits() == 8 ? 0x1p15f : 0x1p7f);
    Value q = raised(four, i);
    if (w.target.fusesMultiplyAdd() && !isFourBits()) // whose scales are powers of two
      return math::FmaOp::create(w.b, w.loc, q, scale, product(scale, constant(-above)));
    return product(scale, difference(q, constant(above)));
  }
  bool isFourBits() const { return layout.numbers == blocks::E2M1; }
  /// Whether the halves of a word's bytes are looked up in a table, eight numbers at once.
  bool looksUp() const { return part && w.target.selectsBytes(); }
  Value lookUp(Value halves);
  Value fourBits(Value four);
  Value eightBits(Value four, Value i);
  SmallVector<Value> subScales();

  Value words;
  const blocks::Layout layout;
  bool whole;         ///< whether blocks begin at multiples of four bytes
  Value base;         ///< the word from which places count
  Value block;        ///< the first byte of the block, less `before`
  int64_t before = 0; ///< bytes of the blocks before it in the span
  Value first;        ///< the group's first number in the block
  std::optional<int64_t>
      part; ///< the half of the block, if it is known and the numbers have 4 bits
};

/// 16 plus the number of each of the four lowest halves, whose first bit is a sign. A half with the
/// sign, or without, selects the sign of a small byte, which is 0.
Value Decoder::lookUp(Value halves) {
  auto magnitudes = [&](Value selector) {
    return w.target.selectBytes(w.b, w.loc, number(0x03020100), number(0x0c080604), selector);
  };
  Value negative = arith::XOrIOp::create(w.b, w.loc, halves, number(0x8888));
  return arith::SubIOp::create(w.b, w.loc, plus(magnitudes(halves), 0x10101010),
                               magnitudes(negative));
}

/// 16 plus or minus q in halves, of four bytes at once, each with a sign, two bits of exponent and
/// one of fraction: 0, 1, 2, 3, 4, 6, 8, 12. What is added to the seven low bits to get q is 1, 2
/// and 5 for the last three. No byte overflows.
Value Decoder::fourBits(Value four) {
  Value low = both(four, 0x07070707), isLarge = both(right(low, 2), 0x01010101);
  Value fraction = arith::AndIOp::create(w.b, w.loc, isLarge, low);
  Value high = arith::AndIOp::create(w.b, w.loc, isLarge, right(low, 1));
  Value last = arith::AndIOp::create(w.b, w.loc, high, low);
  Value q = plus(plus(low, fraction), left(plus(high, last), 1));
  Value isNegative = times(both(right(four, 3), 0x01010101), 255);
  Value twice = left(arith::AndIOp::create(w.b, w.loc, q, isNegative), 1);
  return arith::SubIOp::create(w.b, w.loc, plus(q, 0x10101010), twice);
}

/// Sign, four bits of exponent, three of fraction; the largest is NaN.
Value Decoder::eightBits(Value four, Value i) {
  Value q = byteOf(four, i), low = both(q, 127), bits = left(low, 20);
  Value common = plus(bits, 120 << 23), nan = number(0x7fc00000);
  Value tiny = product(toFloat(low), constant(0x1p-9f));
  Value magnitude =
      choose(isLess(low, 8), arith::BitcastOp::create(w.b, w.loc, w.b.getI32Type(), tiny), common);
  return fromBits(either(choose(isLess(low, 127), magnitude, nan), left(right(q, 7), 31)));
}

/// d s and e t, of numbers d s q − e t, with s and t for each 32.
SmallVector<Value> Decoder::subScales() {
  Value j = right(first, 5), inFour = both(j, 3);
  // As in lib/Numerics/BlockFormats.cpp: s and t of the last four sub-blocks have their low
  // bits in the last four bytes, and their high ones above those of the first four.
  auto bytesOf = [&](int64_t more) {
    return byteOf(fourBytes({}, layout.groupsAt + more), inFour);
  };
  Value a = bytesOf(0), b = bytesOf(4), c = bytesOf(8), isEarly = isLess(j, 4);
  Value s = choose(isEarly, both(a, 63), either(both(c, 15), left(right(a, 6), 4)));
  Value t = choose(isEarly, both(b, 63), either(right(c, 4), left(right(b, 6), 4)));
  return {product(half(layout.scaleAt), toFloat(s)), product(half(layout.minimumAt), toFloat(t))};
}

SmallVector<Value> Decoder::scales() {
  switch (layout.scale) {
  case blocks::Half:
    if (layout.minimumAt)
      return {half(layout.scaleAt), half(layout.minimumAt)};
    return {half(layout.scaleAt)};
  case blocks::SixBits:
    return subScales();
  case blocks::Bytes: {
    Value s = signedByteOf(byteAt(right(first, 4), layout.groupsAt), number(0));
    return {product(half(layout.scaleAt), toFloat(s))};
  }
  case blocks::PowerOfTwo: { // the smallest two are no normal numbers
    Value e = byteAt({}, layout.scaleAt);
    return {fromBits(choose(isLess(e, 2), left(number(0x00200000), e), left(minus(e, 1), 23)))};
  }
  case blocks::Float:
    return {fromBits(fourBytes({}, layout.scaleAt))};
  case blocks::Apart:
    break;
  }
  llvm_unreachable("a GPU's blocks have their scales");
}

Value Decoder::stored() {
  if (looksUp())
    return fourBytes(both(first, 15), layout.low.at);
  Value low = bitsOf(layout.low);
  if (layout.top.bits)
    return either(low, left(bitsOf(layout.top), layout.low.bits));
  if (isFourBits())
    return fourBits(low);
  if (layout.numbers == blocks::Signed) // 128 is added to each
    return arith::XOrIOp::create(w.b, w.loc, low, number(int32_t(0x80808080)));
  return low;
}

SmallVector<Value> Decoder::numbers(ValueRange in, Value stored, ArrayRef<Value> scales) {
  const int64_t zero = isFourBits() ? 16 : layout.numbers == blocks::Signed ? 128 : layout.zero;
  if (looksUp())
    return llvm::map_to_vector(llvm::seq<int64_t>(4), [&](int64_t i) {
      Value four = lookUp(i < 2 ? stored : right(stored, 16));
      return scaled(scales[0], four, number(i % 2 * 2 + *part), zero);
    });
  return llvm::map_to_vector(in, [&](Value i) {
    if (layout.numbers == blocks::E4M3)
      return product(scales[0], eightBits(stored, i));
    Value q = scaled(scales[0], stored, i, zero);
    return scales.size() == 1                ? q
           : layout.scale == blocks::SixBits ? difference(q, scales[1])
                                             : sum(q, scales[1]);
  });
}

} // namespace

xf::QuantizedType gpu_lowering::typeOf(kernel::QuantizedOp matrix) {
  return cast<xf::QuantizedType>(cast<RankedTensorType>(matrix.getStored()).getElementType());
}

int64_t gpu_lowering::bytesOf(xf::QuantizedType type, int64_t numbers) {
  return numbers / type.getDeviceBlockElements() * type.getDeviceBlockBytes();
}

static SmallVector<Value> firstFour(KernelWriter &w) {
  return llvm::map_to_vector(llvm::seq<int64_t>(4), [&](int64_t i) -> Value {
    return arith::ConstantIntOp::create(w.b, w.loc, i, 32);
  });
}

SmallVector<Value> gpu_lowering::decode(KernelWriter &w, xf::QuantizedType type, Value words,
                                        Value group, ValueRange in) {
  Decoder decoder(w, type, words, group);
  SmallVector<Value> scales = decoder.scales();
  return decoder.numbers(in, decoder.stored(), scales);
}

SmallVector<Value> gpu_lowering::decodeFour(KernelWriter &w, xf::QuantizedType type, Value words,
                                            Value group) {
  return decode(w, type, words, group, firstFour(w));
}

//===----------------------------------------------------------------------===//
// Spans
//===----------------------------------------------------------------------===//

// Numbers whose bits lie in the same words are `apart` from each other: a chunk of `together` times
// `apart` numbers has `apart` / 4 words, each with four numbers from each of its `together` parts.
static int64_t numbersApart(const blocks::Layout &layout) {
  return std::min<int64_t>(layout.low.apart, 32);
}
static int64_t partsTogether(const blocks::Layout &layout) {
  return layout.low.together() * layout.low.apart / numbersApart(layout);
}

SpanDecoder::SpanDecoder(KernelWriter &w, xf::QuantizedType type, Value words, Value start)
    : WordWriter(w), type(type), words(words), start(start),
      together(partsTogether(deviceLayoutOf(type))), apart(numbersApart(deviceLayoutOf(type))) {
  // A lane needs a scale for each piece, or for all pieces of the same words. Each of the lanes
  // that need the same ones decodes every `sharing`-th of them.
  int64_t common = deviceLayoutOf(type).group();
  perScale = common > apart ? together : 1;
  sharing = std::min(common, apart) / 4;
  for (int64_t i = 0; i < pieces / perScale; i += sharing) {
    Value piece = w.add(arith::RemUIOp::create(w.b, w.loc, w.lane, w.index(sharing)), w.index(i));
    SmallVector<Value> place = w.split(w.times(piece, fixedExtent(perScale)),
                                       {fixedExtent(pieces / together), fixedExtent(together)});
    Value at = w.add(w.times(place[0], fixedExtent(4 * together * w.lanes)),
                     w.times(place[1], fixedExtent(apart)));
    llvm::append_range(scales,
                       Decoder(w, type, words, start, toI32(w.add(ofLane(), at)), 0).scales());
  }
}

Value SpanDecoder::ofLane() {
  SmallVector<Value> place =
      w.split(w.lane, {fixedExtent(w.lanes * 4 / apart), fixedExtent(apart / 4)});
  return w.add(w.times(place[0], fixedExtent(together * apart)), w.times(place[1], fixedExtent(4)));
}

int64_t SpanDecoder::ofPiece(int64_t piece) const {
  return piece / together * 4 * together * w.lanes + piece % together * apart;
}

Value SpanDecoder::first(int64_t piece) { return w.add(ofLane(), w.index(ofPiece(piece))); }

Value SpanDecoder::read(int64_t piece) {
  return Decoder(w, type, words, start, toI32(ofLane()), ofPiece(piece)).stored();
}

SmallVector<Value> SpanDecoder::numbers(int64_t piece, Value stored) {
  int64_t own = piece / perScale, kinds = scales.size() * sharing * perScale / pieces;
  Value from = either(both(toI32(w.lane), -sharing), number(own % sharing));
  SmallVector<Value> needed;
  for (int64_t kind = 0; kind < kinds; ++kind)
    needed.push_back(gpu::ShuffleOp::create(w.b, w.loc, scales[own / sharing * kinds + kind], from,
                                            number(w.lanes), gpu::ShuffleMode::IDX)
                         .getShuffleResult());
  return Decoder(w, type, words, start, toI32(ofLane()), ofPiece(piece))
      .numbers(firstFour(w), stored, needed);
}
