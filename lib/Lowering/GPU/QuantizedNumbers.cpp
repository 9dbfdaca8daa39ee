#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;
using xf::BlockFormat;

namespace {

/// Decodes numbers of one group. Integers are i32, and so are places, which are bytes from `base`
/// on.
class Decoder : WordWriter {
public:
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value group)
      : WordWriter(w), words(words), type(type), whole(type.getDeviceBlockBytes() % 4 == 0) {
    Value groups = w.index(type.getDeviceBlockElements() / 4);
    Value byte = w.times(arith::DivUIOp::create(w.b, w.loc, group, groups),
                         fixedExtent(type.getDeviceBlockBytes()));
    base = arith::ShRUIOp::create(w.b, w.loc, byte, w.index(2));
    block = whole ? number(0) : both(toI32(byte), 3);
    first = toI32(w.times(arith::RemUIOp::create(w.b, w.loc, group, groups), fixedExtent(4)));
  }
  /// The group of number `at` + `more`, which have no bit in common, of a span that begins with a
  /// block at word `base`.
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value base, Value at, int64_t more)
      : WordWriter(w), words(words), type(type), whole(type.getDeviceBlockBytes() % 4 == 0),
        base(base) {
    if (isFourBits())
      part = more / 16 % 2;
    int64_t elements = type.getDeviceBlockElements(), bytes = type.getDeviceBlockBytes();
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
  /// Four bits of each of the group's numbers, in bytes, where a block's first 16 are in the low
  /// halves of 16 bytes.
  Value halvesOf16(int64_t from) {
    return both(right(fourBytes(both(first, 15), from), right(both(first, 16), 2)), 0x0f0f0f0f);
  }
  /// The group's fifth bits, one for each element of a block in a word: four times 0 or 16.
  Value fifthOf(int64_t from) {
    Value four = both(right(fourBytes({}, from), first), 15);
    // The bits of a product with 1 + 2⁷ + 2¹⁴ + 2²¹ do not overlap.
    return left(both(times(four, 1 | 1 << 7 | 1 << 14 | 1 << 21), 0x01010101), 4);
  }
  /// 128 plus byte i of four, which is below 128: the byte is the first bits of a float32 behind
  /// those of 2⁷. Of q8_0, whose bytes are below 256, 2¹⁵ plus the byte.
  Value raised(Value four, Value i) {
    bool isWide = type.getFormat() == BlockFormat::q8_0;
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
    float above = zero + (type.getFormat() == BlockFormat::q8_0 ? 0x1p15f : 0x1p7f);
    Value q = raised(four, i);
    if (w.target.fusesMultiplyAdd() && !isFourBits()) // whose scales are powers of two
      return math::FmaOp::create(w.b, w.loc, q, scale, product(scale, constant(-above)));
    return product(scale, difference(q, constant(above)));
  }
  bool isFourBits() const {
    return type.getFormat() == BlockFormat::block_mxfp4 || type.getFormat() == BlockFormat::mxfp4;
  }
  /// Whether the halves of a word's bytes are looked up in a table, eight numbers at once.
  bool looksUp() const { return part && w.target.selectsBytes(); }
  Value lookUp(Value halves);
  Value fourBits(Value four);
  Value eightBits(Value four, Value i);
  SmallVector<Value> subScales();
  Value sixBits();

  Value words;
  xf::QuantizedType type;
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

/// d s and e t, of numbers d s q − e t, with s and t for each 32: d, e, 12 bytes of s and t, with a
/// fifth bit 32 bytes of them (bit j of byte i: element i of the j-th 32), 128 bytes of q, of which
/// 32 hold 64 elements, the first 32 in the low halves.
SmallVector<Value> Decoder::subScales() {
  Value j = right(first, 5), inFour = both(j, 3);
  // SubScales of lib/Numerics/BlockFormats.cpp: s and t of the last four sub-blocks have their low
  // bits in the last four bytes, and their high ones above those of the first four.
  Value a = byteOf(fourBytes({}, 4), inFour), b = byteOf(fourBytes({}, 8), inFour),
        c = byteOf(fourBytes({}, 12), inFour), isEarly = isLess(j, 4);
  Value s = choose(isEarly, both(a, 63), either(both(c, 15), left(right(a, 6), 4)));
  Value t = choose(isEarly, both(b, 63), either(right(c, 4), left(right(b, 6), 4)));
  return {product(half(0), toFloat(s)), product(half(2), toFloat(t))};
}

/// q of d s (q − 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16
/// of s, d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the
/// next 32, and in the high halves of both; their high bits in one byte each.
Value Decoder::sixBits() {
  Value part = right(first, 7), quarter = both(right(first, 5), 3), i = both(first, 31);
  Value lowAt = plus(left(part, 6), plus(left(both(quarter, 1), 5), i));
  Value low = both(right(fourBytes(lowAt, 0), left(right(quarter, 1), 2)), 0x0f0f0f0f);
  Value topAt = plus(left(part, 5), i);
  Value top = both(right(fourBytes(topAt, 128), left(quarter, 1)), 0x03030303);
  return either(low, left(top, 4));
}

SmallVector<Value> Decoder::scales() {
  switch (type.getFormat()) {
  case BlockFormat::q4_0:
  case BlockFormat::q5_0:
  case BlockFormat::q8_0:
    return {half(0)};
  case BlockFormat::q4_1:
  case BlockFormat::q5_1:
    return {half(0), half(2)};
  case BlockFormat::q4_k:
  case BlockFormat::q5_k:
    return subScales();
  case BlockFormat::q6_k: {
    Value s = signedByteOf(byteAt(right(first, 4), 192), number(0));
    return {product(half(208), toFloat(s))};
  }
  case BlockFormat::block_mxfp4:
  case BlockFormat::mxfp4: { // 2^(e − 128); the smallest two are no normal numbers
    Value e = byteAt({}, 0);
    return {fromBits(choose(isLess(e, 2), left(number(0x00200000), e), left(minus(e, 1), 23)))};
  }
  case BlockFormat::f8e4m3:
    return {fromBits(fourBytes({}, 0))};
  }
  llvm_unreachable("all formats have a decoder");
}

Value Decoder::stored() {
  switch (type.getFormat()) {
  case BlockFormat::q4_0:
    return halvesOf16(2);
  case BlockFormat::q4_1:
    return halvesOf16(4);
  case BlockFormat::q5_0:
    return either(halvesOf16(6), fifthOf(2));
  case BlockFormat::q5_1:
    return either(halvesOf16(8), fifthOf(4));
  case BlockFormat::q8_0: // of signed numbers, 128 is added to each
    return arith::XOrIOp::create(w.b, w.loc, fourBytes(first, 2), number(int32_t(0x80808080)));
  case BlockFormat::q4_k:
  case BlockFormat::q5_k: {
    bool hasFifth = type.getFormat() == BlockFormat::q5_k;
    Value j = right(first, 5), inSub = both(first, 31);
    Value at = plus(left(right(j, 1), 5), inSub), shift = left(both(j, 1), 2);
    Value four = both(right(fourBytes(at, hasFifth ? 48 : 16), shift), 0x0f0f0f0f);
    if (hasFifth)
      four = either(four, left(both(right(fourBytes(inSub, 16), j), 0x01010101), 4));
    return four;
  }
  case BlockFormat::q6_k:
    return sixBits();
  case BlockFormat::block_mxfp4:
  case BlockFormat::mxfp4:
    return looksUp() ? fourBytes(both(first, 15), 1) : fourBits(halvesOf16(1));
  case BlockFormat::f8e4m3:
    return fourBytes(first, 4);
  }
  llvm_unreachable("all formats have a decoder");
}

SmallVector<Value> Decoder::numbers(ValueRange in, Value stored, ArrayRef<Value> scales) {
  auto each = [&](llvm::function_ref<Value(Value i)> body) {
    return llvm::map_to_vector(in, [&](Value i) { return body(i); });
  };
  auto allScaled = [&](int64_t zero) {
    return each([&](Value i) { return scaled(scales[0], stored, i, zero); });
  };
  switch (type.getFormat()) {
  case BlockFormat::q4_0:
    return allScaled(8);
  case BlockFormat::q5_0:
    return allScaled(16);
  case BlockFormat::block_mxfp4:
  case BlockFormat::mxfp4:
    if (!looksUp())
      return allScaled(16);
    return llvm::map_to_vector(llvm::seq<int64_t>(4), [&](int64_t i) {
      Value four = lookUp(i < 2 ? stored : right(stored, 16));
      return scaled(scales[0], four, number(i % 2 * 2 + *part), 16);
    });
  case BlockFormat::q6_k:
    return allScaled(32);
  case BlockFormat::q8_0:
    return allScaled(128);
  case BlockFormat::q4_1:
  case BlockFormat::q5_1:
    return each([&](Value i) { return sum(scaled(scales[0], stored, i, 0), scales[1]); });
  case BlockFormat::q4_k:
  case BlockFormat::q5_k:
    return each([&](Value i) { return difference(scaled(scales[0], stored, i, 0), scales[1]); });
  case BlockFormat::f8e4m3:
    return each([&](Value i) { return product(scales[0], eightBits(stored, i)); });
  }
  llvm_unreachable("all formats have a decoder");
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
static int64_t partsTogether(BlockFormat format) {
  return format == BlockFormat::q6_k                                    ? 4
         : format == BlockFormat::q8_0 || format == BlockFormat::f8e4m3 ? 1
                                                                        : 2;
}
static int64_t numbersApart(xf::QuantizedType type) {
  return partsTogether(type.getFormat()) == 2 && type.getDeviceBlockElements() == 32 ? 16 : 32;
}
/// How many numbers share their scales.
static int64_t numbersOfScale(BlockFormat format) { return format == BlockFormat::q6_k ? 16 : 32; }

SpanDecoder::SpanDecoder(KernelWriter &w, xf::QuantizedType type, Value words, Value start)
    : WordWriter(w), type(type), words(words), start(start),
      together(partsTogether(type.getFormat())), apart(numbersApart(type)) {
  // A lane needs a scale for each piece, or for all pieces of the same words. Each of the lanes
  // that need the same ones decodes every `sharing`-th of them.
  int64_t common = numbersOfScale(type.getFormat());
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
