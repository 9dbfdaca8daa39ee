#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;
using xf::BlockFormat;

namespace {

/// Decodes numbers of one group. Integers are i32, and so are places, which are bytes from `base`
/// on.
class Decoder {
public:
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value group)
      : w(w), words(words), type(type), whole(type.getDeviceBlockBytes() % 4 == 0) {
    Value groups = w.index(type.getDeviceBlockElements() / 4);
    Value byte = w.times(arith::DivUIOp::create(w.b, w.loc, group, groups),
                         fixedExtent(type.getDeviceBlockBytes()));
    base = arith::ShRUIOp::create(w.b, w.loc, byte, w.index(2));
    block = whole ? number(0) : both(toI32(byte), 3);
    first = toI32(w.times(arith::RemUIOp::create(w.b, w.loc, group, groups), fixedExtent(4)));
  }
  /// The group of number `at` + `more` (a multiple of `at`'s bound) of a span that begins with a
  /// block at word `base`.
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value base, Value at, int64_t more)
      : w(w), words(words), type(type), whole(type.getDeviceBlockBytes() % 4 == 0), base(base) {
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
  // Integers
  Value number(int64_t i) { return arith::ConstantIntOp::create(w.b, w.loc, i, 32); }
  Value toI32(Value i) { return arith::IndexCastOp::create(w.b, w.loc, w.b.getI32Type(), i); }
  Value plus(Value a, Value b) { return arith::AddIOp::create(w.b, w.loc, a, b); }
  Value plus(Value a, int64_t b) { return b ? plus(a, number(b)) : a; }
  Value minus(Value a, int64_t b) { return plus(a, -b); }
  Value times(Value a, int64_t b) { return arith::MulIOp::create(w.b, w.loc, a, number(b)); }
  Value both(Value a, int64_t b) { return arith::AndIOp::create(w.b, w.loc, a, number(b)); }
  Value either(Value a, Value b) { return arith::OrIOp::create(w.b, w.loc, a, b); }
  Value left(Value a, Value by) { return arith::ShLIOp::create(w.b, w.loc, a, by); }
  Value left(Value a, int64_t by) { return left(a, number(by)); }
  Value right(Value a, Value by) { return arith::ShRUIOp::create(w.b, w.loc, a, by); }
  Value right(Value a, int64_t by) { return right(a, number(by)); }
  Value isLess(Value a, int64_t b) {
    return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ult, a, number(b));
  }
  Value choose(Value condition, Value a, Value b) {
    return arith::SelectOp::create(w.b, w.loc, condition, a, b);
  }
  Value byteOf(Value four, Value i) { return both(right(four, left(i, 3)), 255); }
  Value signedByteOf(Value four, Value i) {
    Value high = left(four, arith::SubIOp::create(w.b, w.loc, number(24), left(i, 3)));
    return arith::ShRSIOp::create(w.b, w.loc, high, number(24));
  }

  // Floating point
  Value fromBits(Value bits) {
    return arith::BitcastOp::create(w.b, w.loc, w.b.getF32Type(), bits);
  }
  Value toFloat(Value i) { return arith::SIToFPOp::create(w.b, w.loc, w.b.getF32Type(), i); }
  Value product(Value a, Value b) { return arith::MulFOp::create(w.b, w.loc, a, b); }
  Value sum(Value a, Value b) { return arith::AddFOp::create(w.b, w.loc, a, b); }
  Value difference(Value a, Value b) { return arith::SubFOp::create(w.b, w.loc, a, b); }
  Value constant(float x) { return arith::ConstantOp::create(w.b, w.loc, w.b.getF32FloatAttr(x)); }

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
  /// Byte i of four, minus `zero`, exactly: an integer below 2²³ is the last bits of 2²³ and
  /// itself.
  Value less(Value four, Value i, int64_t zero) {
    Value above = fromBits(either(byteOf(four, i), number(0x4b000000)));
    return difference(above, constant(0x1p23f + float(zero)));
  }
  Value fourBits(Value four);
  Value eightBits(Value four, Value i);
  SmallVector<Value> subScales();
  Value sixBits();

  KernelWriter &w;
  Value words;
  xf::QuantizedType type;
  bool whole;         ///< whether blocks begin at multiples of four bytes
  Value base;         ///< the word from which places count
  Value block;        ///< the first byte of the block, less `before`
  int64_t before = 0; ///< bytes of the blocks before it in the span
  Value first;        ///< the group's first number in the block
};

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
  Value tiny = product(less(low, number(0), 0), constant(0x1p-9f));
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
    return fourBits(halvesOf16(1));
  case BlockFormat::f8e4m3:
    return fourBytes(first, 4);
  }
  llvm_unreachable("all formats have a decoder");
}

SmallVector<Value> Decoder::numbers(ValueRange in, Value stored, ArrayRef<Value> scales) {
  auto each = [&](llvm::function_ref<Value(Value i)> body) {
    return llvm::map_to_vector(in, [&](Value i) { return body(i); });
  };
  auto scaled = [&](int64_t zero) {
    return each([&](Value i) { return product(scales[0], less(stored, i, zero)); });
  };
  switch (type.getFormat()) {
  case BlockFormat::q4_0:
    return scaled(8);
  case BlockFormat::q5_0:
  case BlockFormat::block_mxfp4:
  case BlockFormat::mxfp4:
    return scaled(16);
  case BlockFormat::q6_k:
    return scaled(32);
  case BlockFormat::q8_0:
    return scaled(128);
  case BlockFormat::q4_1:
  case BlockFormat::q5_1:
    return each([&](Value i) { return sum(product(scales[0], less(stored, i, 0)), scales[1]); });
  case BlockFormat::q4_k:
  case BlockFormat::q5_k:
    return each(
        [&](Value i) { return difference(product(scales[0], less(stored, i, 0)), scales[1]); });
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

/// How many numbers share their scales.
static int64_t numbersOfScale(xf::QuantizedType type) {
  return type.getFormat() == BlockFormat::q6_k ? 16 : 32;
}

SpanDecoder::SpanDecoder(KernelWriter &w, xf::QuantizedType type, Value words, Value start)
    : w(w), type(type), words(words), start(start) {
  Value own = toI32(w.times(w.lane, fixedExtent(numbersOfLane)));
  for (int64_t i = 0; i < numbersOfLane; i += numbersOfScale(type))
    llvm::append_range(scales, Decoder(w, type, words, start, own, i).scales());
}

Value SpanDecoder::toI32(Value i) {
  return arith::IndexCastOp::create(w.b, w.loc, w.b.getI32Type(), i);
}

Value SpanDecoder::read(int64_t piece) {
  Value own = toI32(w.times(w.lane, fixedExtent(4)));
  return Decoder(w, type, words, start, own, piece * 4 * w.lanes).stored();
}

SmallVector<Value> SpanDecoder::numbers(int64_t piece, Value stored) {
  // The scale that the numbers of the piece need is number `at` of all, counted lane by lane.
  int64_t ofLane = numbersOfLane / numbersOfScale(type), kinds = scales.size() / ofLane;
  int64_t groups = numbersOfScale(type) / 4; // lanes with the same scale
  Value at = w.add(arith::DivUIOp::create(w.b, w.loc, w.lane, w.index(groups)),
                   w.index(piece * w.lanes / groups));
  Value from = toI32(arith::DivUIOp::create(w.b, w.loc, at, w.index(ofLane)));
  Value width = arith::ConstantIntOp::create(w.b, w.loc, w.lanes, 32);
  SmallVector<Value> needed;
  for (int64_t kind = 0; kind < kinds; ++kind) {
    Value found;
    for (int64_t i = ofLane; i-- > 0;) {
      Value other = gpu::ShuffleOp::create(w.b, w.loc, scales[i * kinds + kind], from, width,
                                           gpu::ShuffleMode::IDX)
                        .getShuffleResult();
      Value isThis = arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq,
                                           arith::RemUIOp::create(w.b, w.loc, at, w.index(ofLane)),
                                           w.index(i));
      found = found ? arith::SelectOp::create(w.b, w.loc, isThis, other, found) : other;
    }
    needed.push_back(found);
  }
  Value own = toI32(w.times(w.lane, fixedExtent(4)));
  return Decoder(w, type, words, start, own, piece * 4 * w.lanes)
      .numbers(firstFour(w), stored, needed);
}
