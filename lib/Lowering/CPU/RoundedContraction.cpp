#include "lib/Lowering/CPU/RoundedContraction.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// A panel must fit into half of the second-level cache: a thread may have no more than that.
constexpr int64_t panelBytes = 384 << 10;
/// The largest number of elements of one row in a panel.
constexpr int64_t maxLength = 4096;
/// Groups of rows in a tile.
constexpr int64_t tileGroups = 2;
/// Vectors in a tile: the largest number whose sums leave registers for the factors. The vectors
/// that remain go in smaller tiles.
constexpr int64_t roundedTileVectors[] = {12, 4, 1};

class Emitter : LoopBuilder {
public:
  Emitter(OpBuilder &b, Location loc, const RoundedOperands &operands, int64_t lanes)
      : LoopBuilder(b, loc), given(operands), lanes(lanes), width(2 * lanes),
        in(cast<MemRefType>(operands.w.getType()).getDimSize(operands.transposed ? 0 : 1)) {
    int64_t panels = llvm::divideCeil(in, maxLength);
    length = llvm::alignTo(llvm::divideCeil(in, panels), width);
    int64_t fitting = panelBytes / (2 * length) / (tileGroups * lanes);
    panelGroups = std::max<int64_t>(1, fitting) * tileGroups;
  }

  void emit(Value begin, Value end);

private:
  Value groupsOf(Value rows) { return over(add(rows, index(lanes - 1)), lanes); }
  VectorType sums() { return VectorType::get({lanes}, b.getF32Type()); }
  VectorType pairs() { return VectorType::get({lanes}, b.getI32Type()); }
  VectorType numbers() { return VectorType::get({width}, b.getBF16Type()); }
  Value allocate(MemRefType type);
  Value mask(int64_t size, Value count) {
    return vector::CreateMaskOp::create(b, loc, VectorType::get({size}, b.getI1Type()), count);
  }

  /// A panel: rows `from` to `to`, columns `column` to `column` + `count`.
  struct Part {
    Value from, to, column, count;
    Value isFirst; ///< whether it is the first panel of its rows
  };
  void copy(const Part &part);
  void copyPairs(const Part &part, Value group, Value k, Value mask);
  void interleaveRows(const Part &part, Value group, Value pair);
  void compute(const Part &part);
  void tile(const Part &part, Value group, int64_t groups, Value vector, int64_t vectors);

  RoundedOperands given;
  int64_t lanes, width, in;
  int64_t length;      ///< elements of a row in a panel, a multiple of a register's
  int64_t panelGroups; ///< groups of `lanes` rows in a panel
  Value panel;         ///< group × pair × row in the group
};

/// The address of memory on the thread's stack.
Value Emitter::allocate(MemRefType type) {
  Value count =
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(type.getNumElements()));
  return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()),
                                type.getElementType(), count, /*alignment=*/64);
}

void Emitter::emit(Value begin, Value end) {
  auto panelType = MemRefType::get({panelGroups, length / 2, lanes}, b.getI32Type());
  panel = memrefAt(b, loc, allocate(panelType), panelType, {});

  forRange(begin, end, panelGroups * lanes, [&](Value from) {
    Value to = least(add(from, index(panelGroups * lanes)), end);
    forRange(index(0), index(in), length, [&](Value column) {
      Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, column, index(0));
      Part part{from, to, column, least(index(length), sub(index(in), column)), isFirst};
      copy(part);
      compute(part);
    });
  });
}

//===----------------------------------------------------------------------===//
// The panel
//===----------------------------------------------------------------------===//

void Emitter::copy(const Part &part) {
  if (given.transposed) {
    Value end = times(over(add(part.count, index(width - 1)), width), lanes);
    forRange(index(0), end, 1, [&](Value pair) {
      forRange(index(0), groupsOf(sub(part.to, part.from)), 1,
               [&](Value group) { interleaveRows(part, group, pair); });
    });
    return;
  }
  Value whole = multiples(part.count, width);
  forRange(index(0), groupsOf(sub(part.to, part.from)), 1, [&](Value group) {
    forRange(index(0), whole, width, [&](Value k) { copyPairs(part, group, k, {}); });
    forRange(whole, part.count, width,
             [&](Value k) { copyPairs(part, group, k, mask(width, sub(part.count, k))); });
  });
}

/// Copies `lanes` pairs of each row of a group, side by side. Behind the last row, the last row is
/// repeated; the sums of the copies are never stored.
void Emitter::copyPairs(const Part &part, Value group, Value k, Value mask) {
  SmallVector<Value> rows;
  Value first = add(part.from, times(group, lanes)), last = sub(part.to, index(1));
  for (int64_t i = 0; i < lanes; ++i) {
    Value row = least(add(first, index(i)), last);
    rows.push_back(vector::BitCastOp::create(
        b, loc, pairs(), load(numbers(), given.w, {row, add(part.column, k)}, mask)));
  }
  transposeSquare(b, loc, rows);
  Value pair = over(k, 2);
  for (auto [i, row] : llvm::enumerate(rows))
    vector::StoreOp::create(b, loc, row, panel, ValueRange{group, add(pair, index(i)), index(0)});
}

/// Copies the pairs of a matrix that is stored transposed: each pair takes a number from each of
/// two rows. Behind the last row the last row is repeated, and is multiplied by zero.
void Emitter::interleaveRows(const Part &part, Value group, Value pair) {
  Value first = add(part.from, times(group, lanes));
  Value present = mask(lanes, sub(part.to, first));
  auto row = [&](int64_t i) {
    Value k = add(part.column, add(times(pair, 2), index(i)));
    return load(VectorType::get({lanes}, b.getBF16Type()), given.w,
                {least(k, index(in - 1)), first}, present);
  };
  Value both = vector::InterleaveOp::create(b, loc, row(0), row(1));
  vector::StoreOp::create(b, loc, vector::BitCastOp::create(b, loc, pairs(), both), panel,
                          ValueRange{group, pair, index(0)});
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void Emitter::compute(const Part &part) {
  Value groups = groupsOf(sub(part.to, part.from)), even = multiples(groups, tileGroups);
  Value done = index(0);
  for (int64_t vectors : roundedTileVectors) {
    Value last = add(done, multiples(sub(given.rows, done), vectors));
    forRange(done, last, vectors, [&](Value vector) {
      forRange(index(0), even, tileGroups,
               [&](Value group) { tile(part, group, tileGroups, vector, vectors); });
      forRange(even, groups, 1, [&](Value group) { tile(part, group, 1, vector, vectors); });
    });
    done = last;
  }
}

/// y[vector…, rows of the groups] += their products along the panel.
void Emitter::tile(const Part &part, Value group, int64_t groups, Value vector, int64_t vectors) {
  SmallVector<Value> outputs, stored; // of each group: first row, mask of its rows
  for (int64_t g = 0; g < groups; ++g) {
    outputs.push_back(add(part.from, times(add(group, index(g)), lanes)));
    stored.push_back(mask(lanes, sub(part.to, outputs.back())));
  }
  SmallVector<Type> types(groups * vectors, sums());
  auto start = scf::IfOp::create(b, loc, types, part.isFirst, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(start.thenBlock());
    scf::YieldOp::create(b, loc, SmallVector<Value>(types.size(), zeros(sums())));
    b.setInsertionPointToStart(start.elseBlock());
    SmallVector<Value> soFar;
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t g = 0; g < groups; ++g)
        soFar.push_back(load(sums(), given.y, {add(vector, index(v)), outputs[g]}, stored[g]));
    scf::YieldOp::create(b, loc, soFar);
  }
  Value end = over(add(part.count, index(width - 1)), width);
  // Addresses the pairs of all vectors of the tile from one base address, with constant distances.
  int64_t stride = VectorRounder::stride(in) / 2;
  Value begin = toI64(b, loc, add(times(vector, stride), over(part.column, 2)));
  Value address = LLVM::GEPOp::create(b, loc, given.x.getType(), b.getI32Type(), given.x,
                                      ArrayRef<LLVM::GEPArg>{begin});
  Value x = memrefAt(b, loc, address, MemRefType::get({vectors, stride}, b.getI32Type()), {});
  auto loop = scf::ForOp::create(b, loc, index(0), times(end, lanes), index(1), start.getResults());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value pair = loop.getInductionVar();
    SmallVector<Value> ws, next;
    for (int64_t g = 0; g < groups; ++g)
      ws.push_back(vector::BitCastOp::create(
          b, loc, numbers(),
          vector::LoadOp::create(b, loc, pairs(), panel,
                                 ValueRange{add(group, index(g)), pair, index(0)})));
    StringAttr name = b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps." + Twine(lanes * 32));
    for (int64_t v = 0; v < vectors; ++v) {
      Value one = memref::LoadOp::create(b, loc, x, ValueRange{index(v), pair});
      Value wide = vector::BitCastOp::create(b, loc, numbers(),
                                             vector::BroadcastOp::create(b, loc, pairs(), one));
      for (Value w : ws)
        next.push_back(
            LLVM::CallIntrinsicOp::create(b, loc, sums(), name,
                                          ValueRange{loop.getRegionIterArg(next.size()), w, wide})
                .getResults());
    }
    scf::YieldOp::create(b, loc, next);
  }
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t g = 0; g < groups; ++g)
      store(loop.getResult(v * groups + g), given.y, {add(vector, index(v)), outputs[g]},
            stored[g]);
}

} // namespace

void ctxc::emitRounded(OpBuilder &b, Location loc, const RoundedOperands &operands, Value begin,
                       Value end, int64_t lanes) {
  Emitter(b, loc, operands, lanes).emit(begin, end);
}
