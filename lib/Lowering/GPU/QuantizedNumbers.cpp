#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;
using xf::BlockFormat;

namespace {

/// Decodes numbers of one group. Integers are i32; places are indices of bytes.
class Decoder {
public:
  Decoder(KernelWriter &w, xf::QuantizedType type, Value words, Value group)
      : w(w), words(words), type(type), whole(type.getBlockBytes() % 4 == 0) {
    Value groups = w.index(type.getBlockElements() / 4);
    block = w.times(arith::DivUIOp::create(w.b, w.loc, group, groups),
                    fixedExtent(type.getBlockBytes()));
    first = toI32(w.times(arith::RemUIOp::create(w.b, w.loc, group, groups), fixedExtent(4)));
  }

  /// The float32 of each number i of the group.
  SmallVector<Value> numbers(ValueRange in);

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
  Value loadWord(Value i) { return memref::LoadOp::create(w.b, w.loc, words, ValueRange{i}); }
  Value place(Value offset, int64_t more) {
    Value at = w.add(block, w.index(more));
    return offset ? w.add(at, arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), offset))
                  : at;
  }
  Value inWord(Value place) { return left(both(toI32(place), 3), 3); }
  Value quarter(Value place) { return arith::ShRUIOp::create(w.b, w.loc, place, w.index(2)); }
  /// Four bytes from `offset` + `more` on; `offset` is a multiple of four.
  Value fourBytes(Value offset, int64_t more) {
    Value at = place(offset, more), i = quarter(at), low = loadWord(i);
    if (whole && more % 4 == 0)
      return low;
    // The word behind the last one is not there; nothing of it is used then.
    Value shift = inWord(at), one = w.index(1);
    Value crosses = arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ne, shift, number(0));
    Value next = w.add(i, arith::SelectOp::create(w.b, w.loc, crosses, one, w.index(0)));
    Value high =
        left(left(loadWord(next), 1), arith::SubIOp::create(w.b, w.loc, number(31), shift));
    return choose(crosses, either(right(low, shift), high), low);
  }
  Value byteAt(Value offset, int64_t more) {
    Value at = place(offset, more);
    return both(right(loadWord(quarter(at)), inWord(at)), 255);
  }
  /// The float16 in two bytes, which lie in one word.
  Value half(int64_t more) {
    Value at = place({}, more), bits = right(loadWord(quarter(at)), inWord(at));
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
  using Numbers = llvm::function_ref<Value(Value i)>;
  SmallVector<Value> each(ValueRange in, Numbers body) {
    return llvm::map_to_vector(in, [&](Value i) { return body(i); });
  }
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
  SmallVector<Value> scaled(ValueRange in, Value four, int64_t zero) {
    Value d = half(0);
    return each(in, [&](Value i) { return product(d, toFloat(minus(byteOf(four, i), zero))); });
  }
  SmallVector<Value> shifted(ValueRange in, Value four) {
    Value d = half(0), m = half(2);
    return each(in, [&](Value i) { return sum(product(d, toFloat(byteOf(four, i))), m); });
  }
  SmallVector<Value> powers(ValueRange in);
  SmallVector<Value> subScaled(ValueRange in, bool hasFifth);
  SmallVector<Value> sixBits(ValueRange in);

  KernelWriter &w;
  Value words;
  xf::QuantizedType type;
  bool whole;  ///< whether blocks begin at multiples of four bytes
  Value block; ///< the block's first byte
  Value first; ///< the group's first number in the block
};

/// 2^(e − 128) q, q in halves: e, 16 bytes.
SmallVector<Value> Decoder::powers(ValueRange in) {
  Value e = byteAt({}, 0), four = halvesOf16(1);
  // The smallest two are no normal numbers.
  Value d = fromBits(choose(isLess(e, 2), left(number(0x00200000), e), left(minus(e, 1), 23)));
  return each(in, [&](Value i) {
    // Sign, two bits of exponent, one of fraction: 0, 1, 2, 3, 4, 6, 8, 12.
    Value q = byteOf(four, i), exponent = both(right(q, 1), 3), fraction = both(q, 1);
    Value large = right(left(plus(fraction, 2), exponent), 1);
    Value magnitude = choose(isLess(exponent, 1), fraction, large);
    Value negative = arith::SubIOp::create(w.b, w.loc, number(0), magnitude);
    return product(d, toFloat(choose(isLess(q, 8), magnitude, negative)));
  });
}

/// d s q − e t, with s and t for each 32: d, e, 12 bytes of s and t, with a fifth bit 32 bytes of
/// them (bit j of byte i: element i of the j-th 32), 128 bytes of q, of which 32 hold 64 elements,
/// the first 32 in the low halves.
SmallVector<Value> Decoder::subScaled(ValueRange in, bool hasFifth) {
  Value j = right(first, 5), inSub = both(first, 31), inFour = both(j, 3);
  // SubScales of lib/Numerics/BlockFormats.cpp: s and t of the last four sub-blocks have their low
  // bits in the last four bytes, and their high ones above those of the first four.
  Value a = byteOf(fourBytes({}, 4), inFour), b = byteOf(fourBytes({}, 8), inFour),
        c = byteOf(fourBytes({}, 12), inFour), isEarly = isLess(j, 4);
  Value s = choose(isEarly, both(a, 63), either(both(c, 15), left(right(a, 6), 4)));
  Value t = choose(isEarly, both(b, 63), either(right(c, 4), left(right(b, 6), 4)));
  Value scale = product(half(0), toFloat(s)), minimum = product(half(2), toFloat(t));
  Value at = plus(left(right(j, 1), 5), inSub), shift = left(both(j, 1), 2);
  Value four = both(right(fourBytes(at, hasFifth ? 48 : 16), shift), 0x0f0f0f0f);
  if (hasFifth)
    four = either(four, left(both(right(fourBytes(inSub, 16), j), 0x01010101), 4));
  return each(
      in, [&](Value i) { return difference(product(scale, toFloat(byteOf(four, i))), minimum); });
}

/// d s (q − 32), with a signed s for each 16: 128 bytes of low four bits, 64 of high two, 16 of s,
/// d. Of 128 elements the four 32s have their low bits in the low halves of 32 bytes, of the next
/// 32, and in the high halves of both; their high bits in one byte each.
SmallVector<Value> Decoder::sixBits(ValueRange in) {
  Value part = right(first, 7), quarter = both(right(first, 5), 3), i = both(first, 31);
  Value lowAt = plus(left(part, 6), plus(left(both(quarter, 1), 5), i));
  Value low = both(right(fourBytes(lowAt, 0), left(right(quarter, 1), 2)), 0x0f0f0f0f);
  Value topAt = plus(left(part, 5), i);
  Value top = both(right(fourBytes(topAt, 128), left(quarter, 1)), 0x03030303);
  Value four = either(low, left(top, 4));
  Value sAt = plus(left(part, 3), plus(left(quarter, 1), right(i, 4)));
  Value s = signedByteOf(byteAt(sAt, 192), number(0));
  Value scale = product(half(208), toFloat(s));
  return each(in, [&](Value k) { return product(scale, toFloat(minus(byteOf(four, k), 32))); });
}

SmallVector<Value> Decoder::numbers(ValueRange in) {
  switch (type.getFormat()) {
  case BlockFormat::q4_0:
    return scaled(in, halvesOf16(2), 8);
  case BlockFormat::q4_1:
    return shifted(in, halvesOf16(4));
  case BlockFormat::q5_0:
    return scaled(in, either(halvesOf16(6), fifthOf(2)), 16);
  case BlockFormat::q5_1:
    return shifted(in, either(halvesOf16(8), fifthOf(4)));
  case BlockFormat::q8_0: {
    Value d = half(0), four = fourBytes(first, 2);
    return each(in, [&](Value i) { return product(d, toFloat(signedByteOf(four, i))); });
  }
  case BlockFormat::q4_k:
    return subScaled(in, /*hasFifth=*/false);
  case BlockFormat::q5_k:
    return subScaled(in, /*hasFifth=*/true);
  case BlockFormat::q6_k:
    return sixBits(in);
  case BlockFormat::block_mxfp4:
    return powers(in);
  default:
    llvm_unreachable("asked for a format without a decoder");
  }
}

} // namespace

bool gpu_lowering::decodes(BlockFormat format) { return format < BlockFormat::f8e4m3; }

SmallVector<Value> gpu_lowering::decode(KernelWriter &w, xf::QuantizedType type, Value words,
                                        Value group, ValueRange in) {
  return Decoder(w, type, words, group).numbers(in);
}

SmallVector<Value> gpu_lowering::decodeFour(KernelWriter &w, xf::QuantizedType type, Value words,
                                            Value group) {
  SmallVector<Value> in;
  for (int64_t i = 0; i < 4; ++i)
    in.push_back(arith::ConstantIntOp::create(w.b, w.loc, i, 32));
  return decode(w, type, words, group, in);
}
