#include "lib/Lowering/CPU/ByteProduct.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;

namespace {

class ProductEmitter {
public:
  ProductEmitter(OpBuilder &b, Location loc, int64_t lanes) : b(b), loc(loc), lanes(lanes) {}

  Value plain(Value sums, Value w, Value x);
  Value inPairs(Value sums, Value w, Value x, ByteRange range);
  Value withSignOf(Value w, Value x);
  Value call(StringRef name, Type type, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), operands)
        .getResults();
  }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }

private:
  VectorType of(int64_t count, Type element) { return VectorType::get({count}, element); }
  Value cast(Value v, VectorType type) { return vector::BitCastOp::create(b, loc, type, v); }
  Value splat(VectorType type, int64_t n) {
    return arith::ConstantOp::create(
        b, loc, SplatElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), n)));
  }
  /// Part `i` of each lane's bytes, as a number of the lane's width: the byte is moved to the top,
  /// and from there to the bottom.
  Value part(Value v, VectorType type, int64_t i, bool isSigned) {
    int64_t bits = type.getElementTypeBitWidth();
    Value wide = cast(v, type);
    if (bits - 8 - 8 * i)
      wide = arith::ShLIOp::create(b, loc, wide, splat(type, bits - 8 - 8 * i));
    Value down = splat(type, bits - 8);
    return isSigned ? Value(arith::ShRSIOp::create(b, loc, wide, down))
                    : Value(arith::ShRUIOp::create(b, loc, wide, down));
  }

  OpBuilder &b;
  Location loc;
  int64_t lanes;
};

} // namespace

Value ProductEmitter::plain(Value sums, Value w, Value x) {
  auto type = of(lanes, b.getI32Type());
  for (int64_t i = 0; i < 4; ++i)
    sums = plus(sums, arith::MulIOp::create(b, loc, part(w, type, i, /*isSigned=*/false),
                                            part(x, type, i, /*isSigned=*/true)));
  return sums;
}

/// x, negative where w is.
Value ProductEmitter::withSignOf(Value w, Value x) {
  Type type = x.getType();
  if (lanes <= 8)
    return call(lanes == 8 ? "llvm.x86.avx2.psign.b" : "llvm.x86.ssse3.psign.b.128", type, {x, w});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, w, zero);
  return arith::SelectOp::create(b, loc, isNegative, arith::SubIOp::create(b, loc, zero, x), x);
}

Value ProductEmitter::inPairs(Value sums, Value w, Value x, ByteRange range) {
  if (range.isSigned) {
    x = withSignOf(w, x);
    w = math::AbsIOp::create(b, loc, w);
  }
  auto pairs = of(2 * lanes, b.getI16Type()), type = of(lanes, b.getI32Type());
  StringRef madd = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                   : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                : "llvm.x86.sse2.pmadd.wd";
  // Two products of bytes fit 16 bits.
  if (2 * range.largest * 127 < (1 << 15)) {
    StringRef name = lanes == 16  ? "llvm.x86.avx512.pmaddubs.w.512"
                     : lanes == 8 ? "llvm.x86.avx2.pmadd.ub.sw"
                                  : "llvm.x86.ssse3.pmadd.ub.sw.128";
    Value two = call(name, pairs, {w, x});
    return plus(sums, call(madd, type, {two, splat(pairs, 1)}));
  }
  for (int64_t i = 0; i < 2; ++i)
    sums = plus(sums, call(madd, type, {part(w, pairs, i, false), part(x, pairs, i, true)}));
  return sums;
}

Value ctxc::addByteProducts(OpBuilder &b, Location loc, ByteProducts products, Value sums, Value w,
                            Value x, ByteRange range) {
  assert(!range.isSigned || products == ByteProducts::X86Pairs);
  int64_t lanes = cast<VectorType>(sums.getType()).getDimSize(0);
  ProductEmitter emitter(b, loc, lanes);
  switch (products) {
  case ByteProducts::Plain:
    return emitter.plain(sums, w, x);
  case ByteProducts::X86Pairs:
    return emitter.inPairs(sums, w, x, range);
  case ByteProducts::X86Dot:
    return emitter.call(("llvm.x86.avx512.vpdpbusd." + Twine(lanes * 32)).str(), sums.getType(),
                        {sums, w, x});
  case ByteProducts::ArmDot:
    // Both operands are signed.
    if (range.largest > 127)
      return emitter.plain(sums, w, x);
    return emitter.call("llvm.aarch64.neon.sdot", sums.getType(), {sums, w, x});
  case ByteProducts::ArmMixed:
    return emitter.call("llvm.aarch64.neon.usdot", sums.getType(), {sums, w, x});
  }
  llvm_unreachable("products of no known kind");
}

ByteProducts ctxc::byteProductsOf(const CpuTarget &target) {
  llvm::StringSet<> has;
  for (StringRef feature : llvm::split(target.features, ','))
    if (feature.consume_front("+"))
      has.insert(feature);
  if (has.contains("dotprod")) // of AArch64
    return has.contains("i8mm") ? ByteProducts::ArmMixed : ByteProducts::ArmDot;
  if (!has.contains(target.lanes == 8 ? "avx2" : "ssse3"))
    return ByteProducts::Plain;
  return has.contains(target.lanes == 16 ? "avx512vnni" : "avxvnni") ? ByteProducts::X86Dot
                                                                     : ByteProducts::X86Pairs;
}
