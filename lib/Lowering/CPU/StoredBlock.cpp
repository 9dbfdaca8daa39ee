#include "lib/Lowering/CPU/StoredBlock.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

static VectorType withElement(Value like, Type element) {
  return VectorType::get(cast<VectorType>(like.getType()).getShape(), element);
}

Value StoredBlock::at(int64_t offset) {
  return LLVM::GEPOp::create(b, loc, address.getType(), b.getI8Type(), address,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

Value StoredBlock::loaded(Type type, int64_t offset) {
  return LLVM::LoadOp::create(b, loc, type, at(offset), /*alignment=*/1);
}

Value StoredBlock::bytes(int64_t offset, int64_t count) {
  return loaded(VectorType::get({count}, b.getI8Type()), offset);
}

Value StoredBlock::halves(int64_t offset, int64_t count) {
  Value v = loaded(VectorType::get({count}, b.getF16Type()), offset);
  return arith::ExtFOp::create(b, loc, withElement(v, b.getF32Type()), v);
}

Value StoredBlock::splat(Value like, int64_t number) {
  auto vector = dyn_cast<VectorType>(like.getType());
  if (!vector)
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(like.getType(), number));
  return arith::ConstantOp::create(
      b, loc, SplatElementsAttr::get(vector, b.getIntegerAttr(vector.getElementType(), number)));
}

Value StoredBlock::lanesOf(Value v, int64_t from, int64_t count) {
  if (cast<VectorType>(v.getType()).getDimSize(0) == count)
    return v;
  return vector::ExtractStridedSliceOp::create(b, loc, v, ArrayRef<int64_t>{from},
                                               ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

Value StoredBlock::repeated(Value v, int64_t i, int64_t count) {
  return vector::ShuffleOp::create(b, loc, v, v, SmallVector<int64_t>(count, i));
}

Value StoredBlock::numbersOf(Value v, bool isSigned) {
  auto wide = withElement(v, b.getI32Type());
  return floatsOf(isSigned ? Value(arith::ExtSIOp::create(b, loc, wide, v))
                           : Value(arith::ExtUIOp::create(b, loc, wide, v)));
}

Value StoredBlock::table(llvm::function_ref<float(int64_t)> number) {
  SmallVector<float> all;
  for (int64_t i = 0; i < 16; ++i)
    all.push_back(number(i));
  auto type = VectorType::get({16}, b.getF32Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef<float>(all)));
}

Value StoredBlock::lookedUp(Value table, Value indices) {
  return LLVM::CallIntrinsicOp::create(b, loc, table.getType(),
                                       b.getStringAttr("llvm.x86.avx512.permvar.sf.512"),
                                       ValueRange{table, indices})
      .getResults();
}

Value StoredBlock::widened(Value v) {
  return arith::ExtUIOp::create(b, loc, withElement(v, b.getI32Type()), v);
}

/// The first four of s and t lie in the low six bits of bytes 0 to 3 and 4 to 7; the others have
/// their low four bits in bytes 8 to 11, and the high two on top of the first four's.
Value StoredBlock::scalesOfK() {
  auto fourOf = [&](ArrayRef<int32_t> numbers) -> Value {
    auto type = VectorType::get({4}, b.getI32Type());
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, numbers));
  };
  auto masked = [&](Value v, int32_t first, int32_t others) -> Value {
    return arith::AndIOp::create(b, loc, v, fourOf({first, others, first, others}));
  };
  Value words = loaded(VectorType::get({4}, b.getI32Type()), 0); // after d and e
  Value low =
      arith::ShRUIOp::create(b, loc, shuffled(words, words, {1, 3, 2, 3}), fourOf({0, 0, 0, 4}));
  Value top = right(shuffled(words, words, {1, 1, 2, 2}), 2);
  Value four = either(masked(low, 0x3f3f3f3f, 0x0f0f0f0f), masked(top, 0, 0x30303030));
  Value bits = vector::BitCastOp::create(b, loc, VectorType::get({16}, b.getI8Type()), four);
  SmallVector<int64_t> eightEach(16, 0);
  std::fill(eightEach.begin() + 8, eightEach.end(), 1);
  Value two = halves(0, 2);
  return product(shuffled(two, two, eightEach), numbersOf(bits, /*isSigned=*/false));
}

Value StoredBlock::scalesOfQ6() {
  return product(repeated(halves(layout.scaleAt, 1), 0, 16),
                 numbersOf(bytes(layout.groupsAt, 16), /*isSigned=*/true));
}

Value StoredBlock::powerOfTwo(Value e) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  bool isVector = isa<VectorType>(e.getType());
  e = arith::ExtUIOp::create(b, loc, isVector ? Type(withElement(e, i32)) : i32, e);
  Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, e, splat(e, 2));
  Value small = arith::ShLIOp::create(b, loc, splat(e, 0x00200000), e);
  Value normal = left(minus(e, 1), 23);
  Value bits = arith::SelectOp::create(b, loc, isSmall, small, normal);
  return arith::BitcastOp::create(b, loc, isVector ? Type(withElement(e, f32)) : f32, bits);
}

Value StoredBlock::tabledPower(Value e) {
  constexpr llvm::StringLiteral name = "powers_of_two";
  auto module = b.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto type = LLVM::LLVMArrayType::get(b.getF32Type(), 256);
  if (!module.lookupSymbol(name)) {
    SmallVector<float> powers;
    for (int i = 0; i < 256; ++i)
      powers.push_back(std::ldexp(1.0f, i - 128));
    auto values =
        DenseElementsAttr::get(RankedTensorType::get({256}, b.getF32Type()), ArrayRef(powers));
    OpBuilder atTop(module.getBodyRegion());
    LLVM::GlobalOp::create(atTop, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           values);
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value table = LLVM::AddressOfOp::create(b, loc, pointer, name);
  Value i = arith::ExtUIOp::create(b, loc, b.getI64Type(), e);
  return LLVM::LoadOp::create(b, loc, b.getF32Type(),
                              LLVM::GEPOp::create(b, loc, pointer, b.getF32Type(), table, i));
}

/// Above 4 the step is 2, above 8 it is 4.
Value StoredBlock::twiceE2M1(Value q) {
  Value m = masked(q, 7), zero = splat(q, 0);
  auto beyond = [&](int64_t n) { return arith::MaxSIOp::create(b, loc, minus(m, n), zero); };
  Value h = arith::AddIOp::create(b, loc, m, beyond(4));
  h = arith::AddIOp::create(b, loc, h, left(beyond(6), 1));
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, q, splat(q, 8));
  return arith::SelectOp::create(b, loc, isNegative, arith::SubIOp::create(b, loc, zero, h), h);
}

Value StoredBlock::lookedUpBytes(ArrayRef<int8_t> table, Value indices) {
  auto type = cast<VectorType>(indices.getType());
  int64_t size = type.getDimSize(0);
  SmallVector<int8_t> repeated;
  for (int64_t i = 0; i < size; ++i)
    repeated.push_back(table[i % 16]);
  Value entries =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(repeated)));
  StringRef name = size == 64   ? "llvm.x86.avx512.pshuf.b.512"
                   : size == 32 ? "llvm.x86.avx2.pshuf.b"
                                : "llvm.x86.ssse3.pshuf.b.128";
  return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name),
                                       ValueRange{entries, indices})
      .getResults();
}
