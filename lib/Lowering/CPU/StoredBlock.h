// Reads of a quantised block's fields into vectors, for the readers of blocks.
#ifndef CTXC_LIB_LOWERING_CPU_STOREDBLOCK_H
#define CTXC_LIB_LOWERING_CPU_STOREDBLOCK_H

#include "ctxc/Support/BlockLayouts.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace ctxc {

/// A block at an address in any alignment.
class StoredBlock : protected LoopBuilder {
protected:
  using VectorType = mlir::VectorType;
  StoredBlock(mlir::OpBuilder &b, mlir::Location loc, const blocks::Layout &layout, Value address)
      : LoopBuilder(b, loc), layout(layout), address(address) {}

  Value at(int64_t offset);
  Value loaded(mlir::Type type, int64_t offset);
  Value bytes(int64_t offset, int64_t count);
  /// `count` float16 from `offset` on, as float32.
  Value halves(int64_t offset, int64_t count);

  /// Integers of any width.
  Value splat(Value like, int64_t number);
  Value masked(Value v, int64_t bits) {
    return mlir::arith::AndIOp::create(b, loc, v, splat(v, bits));
  }
  Value right(Value v, int64_t by) { return mlir::arith::ShRUIOp::create(b, loc, v, splat(v, by)); }
  Value left(Value v, int64_t by) { return mlir::arith::ShLIOp::create(b, loc, v, splat(v, by)); }
  Value either(Value v, Value w) { return mlir::arith::OrIOp::create(b, loc, v, w); }
  Value plus(Value v, int64_t number) {
    return mlir::arith::AddIOp::create(b, loc, v, splat(v, number));
  }
  Value minus(Value v, int64_t number) {
    return mlir::arith::SubIOp::create(b, loc, v, splat(v, number));
  }
  /// The four bits of each byte.
  Value nibble(Value v, bool isHigh) { return isHigh ? right(v, 4) : masked(v, 15); }

  /// `count` lanes of a vector, from `from` on.
  Value lanesOf(Value v, int64_t from, int64_t count);
  /// Entry i of a vector, in `count` lanes.
  Value repeated(Value v, int64_t i, int64_t count);
  /// 0 to count - 1.
  static llvm::SmallVector<int64_t> upTo(int64_t count) {
    return llvm::to_vector(llvm::seq<int64_t>(count));
  }
  Value shuffled(Value v, Value w, llvm::ArrayRef<int64_t> from) {
    return mlir::vector::ShuffleOp::create(b, loc, v, w, from);
  }
  /// Whether the target has SSSE3's shuffle of 16 bytes by others. (8 lanes are those of AVX.)
  static bool hasByteShuffles(int64_t lanes) { return lanes == 8; }
  /// Bytes as float32, exactly.
  Value numbersOf(Value v, bool isSigned);
  /// Whether the target looks numbers up in tables of 16 or 32. (16 lanes are those of AVX-512.)
  static bool hasTables(int64_t lanes) { return lanes == 16; }
  /// The 16 numbers of a table that depends on the block (vector<16 x f32>).
  Value table(llvm::function_ref<float(int64_t)> number);
  /// In each lane the number of the table that the lowest four bits of the index name.
  Value lookedUp(Value table, Value indices);
  /// Numbers of 8 bits in lanes of 32.
  Value widened(Value v);
  /// Whether bytes are loaded where they are widened. (8 lanes are those of AVX2, which widens
  /// eight bytes of memory in one instruction, and needs another one to move those of a register to
  /// its lowest eight.)
  static bool widensWhatItLoads(int64_t lanes) { return lanes == 8; }
  /// The four bits of each of `count` bytes from `offset` on, in lanes of 32.
  Value wideNibbles(int64_t offset, int64_t count, bool isHigh) {
    return nibble(widened(bytes(offset, count)), isHigh);
  }
  /// Integers in lanes of 32 as float32.
  Value floatsOf(Value integers) {
    auto type = mlir::cast<VectorType>(integers.getType());
    return mlir::arith::SIToFPOp::create(b, loc, type.clone(b.getF32Type()), integers);
  }

  Value product(Value v, Value w) { return mlir::arith::MulFOp::create(b, loc, v, w); }
  /// v w + u, where v w has at most 24 bits: in one rounding or in two, it is the same.
  Value exactProductPlus(Value v, Value w, Value u) {
    return mlir::vector::FMAOp::create(b, loc, v, w, u);
  }

  /// The scales of a block of 256 in the K formats of four and five bits (vector<16 x f32>): d s
  /// for each 32, then e t, of which a number is d s q - e t.
  Value scalesOfK();
  /// Those of the format of six bits: d s for each 16.
  Value scalesOfQ6();
  /// 2^(e - 128) of bytes e, or of one (f32); the smallest two are no normal numbers.
  Value powerOfTwo(Value e);
  /// The same of one byte, from a table in the module.
  Value tabledPower(Value e);
  /// Twice the number that four bits stand for, a sign, two bits of exponent and one of fraction:
  /// the sign and 0, 1, 2, 3, 4, 6, 8 or 12.
  Value twiceE2M1(Value q);

  /// In each byte the one of 16 that its value, below 16, names. The target has byte shuffles of
  /// this size: SSSE3's of 16 bytes, AVX2's of 32, AVX-512's of 64.
  Value lookedUpBytes(llvm::ArrayRef<int8_t> table, Value indices);

  /// What `make` emits, once for each key. It may ask for what other keys stand for.
  Value once(int64_t key, llvm::function_ref<Value()> make) {
    if (Value known = shared.lookup(key))
      return known;
    Value made = make();
    shared[key] = made;
    return made;
  }

  const blocks::Layout &layout;

private:
  Value address;
  llvm::MapVector<int64_t, Value> shared;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_STOREDBLOCK_H
