// The heads of a group read the same keys and values. A vector of keys or values that is loaded
// therefore serves several heads. A tile also takes several slots (for scores) or several vectors
// (for mixed values): with a single sum, each addition would have to wait for the one before it.
// Tiling does not change the order of a sum: a score is summed as contractions are (VectorSums.h),
// a mixed value slot after slot.
//
// The keys of all groups for one slot lie side by side in memory. All groups therefore take a few
// slots before any group takes the next ones: a decoded token reads its KV cache in one direction,
// which is the fastest way to read memory.
#include "lib/Lowering/CPU/AttentionLoops.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Whether `memref` is float32, its heads have static sizes, and the elements of its last dimension
/// lie side by side.
bool isInLine(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type && type.getElementType().isF32() && !type.isDynamicDim(1) &&
         succeeded(type.getStridesAndOffset(strides, offset)) && strides.back() == 1;
}

/// For a single row: how many slots all groups take before they go on to the next ones. Many rows
/// find the values in the caches, so they keep their sums in registers along all slots instead.
constexpr int64_t slotsOfOne = 16;

class Emitter {
public:
  Emitter(OpBuilder &b, linalg::LinalgOp op, const CpuTarget &target)
      : b(b), loc(op.getLoc()), left(op.getDpsInputs()[0]), right(op.getDpsInputs()[1]),
        result(op.getDpsInits()[0]), op(op), isStored(kernel::isMarked<kernel::Stored>(op)),
        vector(VectorType::get({rowLanes}, b.getF32Type())) {
    // Half of the registers hold sums, and the other half the factors: 16 sums with AVX-512, 4 with
    // AVX2 and NEON.
    tileSums = std::clamp<int64_t>(target.registers * target.lanes / rowLanes / 2, 1, 16);
    tileHeads = tileSums >= 16 ? 4 : tileSums >= 4 ? 2 : 1;
    groups = cast<MemRefType>(left.getType()).getDimSize(1);
    repeat = cast<MemRefType>(left.getType()).getDimSize(2);
  }

  scf::ForOp scores();
  scf::ForOp mixed();

private:
  using Values = SmallVector<Value>;
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }
  Value plus(Value x, int64_t i) {
    return i ? arith::AddIOp::create(b, loc, x, index(i)).getResult() : x;
  }
  Value dim(Value memref, int64_t i) { return b.createOrFold<memref::DimOp>(loc, memref, i); }
  scf::ForOp loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  /// A loop that carries vectors; `step` computes the vectors of the next iteration.
  Values sum(Value from, Value to, int64_t by, Values init,
             llvm::function_ref<Values(ValueRange, Value)> step);
  /// The slots that row s may see.
  SlotRange slotsOf(Value s) { return seenSlots(b, op, s, dim(left, 0), dim(right, 0)); }
  Value maskOf(int64_t count);
  Value load(Value memref, ValueRange at, Value mask);

  /// Calls body(group, first head, heads of the tile) for all heads.
  void forHeads(llvm::function_ref<void(Value, Value, int64_t)> body);
  struct Heads {
    Value s, group, first;
    int64_t count;
  };
  void scoresTile(const Heads &heads, Value slot, int64_t slots);
  void mixedTile(const Heads &heads, Value from, Value to, Value first, int64_t vectors,
                 Value mask);

  OpBuilder &b;
  Location loc;
  Value left, right, result;
  Operation *op;
  bool isStored;
  VectorType vector;
  int64_t tileSums, tileHeads, groups, repeat;
};

scf::ForOp Emitter::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
  return loop;
}

SmallVector<Value> Emitter::sum(Value from, Value to, int64_t by, Values init,
                                llvm::function_ref<Values(ValueRange, Value)> step) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(by), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, loc, step(loop.getRegionIterArgs(), loop.getInductionVar()));
  return Values(loop.getResults());
}

Value Emitter::maskOf(int64_t count) {
  return vector::ConstantMaskOp::create(b, loc, VectorType::get({rowLanes}, b.getI1Type()),
                                        ArrayRef<int64_t>{count});
}

Value Emitter::load(Value memref, ValueRange at, Value mask) {
  if (!mask)
    return vector::LoadOp::create(b, loc, vector, memref, at);
  Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
  return vector::MaskedLoadOp::create(b, loc, vector, memref, at, mask, zero);
}

void Emitter::forHeads(llvm::function_ref<void(Value, Value, int64_t)> body) {
  int64_t whole = repeat / tileHeads * tileHeads;
  auto all = [&](Value group) {
    if (whole)
      loop(index(0), index(whole), tileHeads, [&](Value head) { body(group, head, tileHeads); });
    if (whole < repeat)
      body(group, index(whole), repeat - whole);
  };
  kernel::mark<kernel::GroupLoop>(loop(index(0), index(groups), 1, all));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

scf::ForOp Emitter::scores() {
  // Tiles with fewer heads take more slots, whose sums are added up across lanes together.
  int64_t tileSlots = llvm::bit_floor(uint64_t(tileSums / std::min(repeat, tileHeads)));
  return loop(index(0), dim(left, 0), 1, [&](Value s) {
    auto tiles = [&](Value slot, int64_t slots) {
      forHeads([&](Value group, Value head, int64_t heads) {
        scoresTile({s, group, head, heads}, slot, slots);
      });
    };
    auto [from, to] = slotsOf(s);
    Value left = arith::RemUIOp::create(b, loc, to, index(tileSlots));
    Value whole = arith::SubIOp::create(b, loc, to, left);
    loop(from, whole, tileSlots, [&](Value slot) { tiles(slot, tileSlots); });
    loop(whole, to, 1, [&](Value slot) { tiles(slot, 1); });
  });
}

void Emitter::scoresTile(const Heads &heads, Value slot, int64_t slots) {
  int64_t width = cast<MemRefType>(right.getType()).getDimSize(2),
          whole = width / rowLanes * rowLanes;
  auto step = [&](ValueRange sums, Value d, Value mask) {
    Values queries, next;
    for (int64_t r = 0; r < heads.count; ++r)
      queries.push_back(load(left, {heads.s, heads.group, plus(heads.first, r), d}, mask));
    for (int64_t t = 0; t < slots; ++t) {
      Value key = load(right, {plus(slot, t), heads.group, d}, mask);
      for (Value query : queries)
        next.push_back(vector::FMAOp::create(b, loc, key, query, sums[next.size()]));
    }
    return next;
  };
  Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
  Values sums(slots * heads.count, zero);
  if (whole)
    sums = sum(index(0), index(whole), rowLanes, sums,
               [&](ValueRange carried, Value d) { return step(carried, d, {}); });
  if (whole < width)
    sums = step(sums, index(whole), maskOf(width - whole));
  for (int64_t r = 0; r < heads.count; ++r) {
    Values ofHead;
    for (int64_t t = 0; t < slots; ++t)
      ofHead.push_back(sums[t * heads.count + r]);
    Value total = totals(b, loc, ofHead);
    Values at{heads.s, heads.group, plus(heads.first, r), slot};
    if (!isStored)
      total = arith::AddFOp::create(
          b, loc, vector::LoadOp::create(b, loc, cast<VectorType>(total.getType()), result, at),
          total);
    vector::StoreOp::create(b, loc, total, result, at);
  }
}

//===----------------------------------------------------------------------===//
// Mixed values
//===----------------------------------------------------------------------===//

scf::ForOp Emitter::mixed() {
  int64_t width = cast<MemRefType>(right.getType()).getDimSize(2);
  int64_t tileVectors = tileSums / tileHeads, tile = tileVectors * rowLanes;
  int64_t tiles = width / tile * tile, whole = width / rowLanes * rowLanes;
  return loop(index(0), dim(left, 0), 1, [&](Value s) {
    auto [first, count] = slotsOf(s);
    Value rows = dim(left, 0);
    Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rows, index(1));
    Value most = arith::MaxUIOp::create(b, loc, count, index(1));
    Value step = arith::SelectOp::create(b, loc, isOne, index(slotsOfOne), most);
    auto slots = scf::ForOp::create(b, loc, first, count, step);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(slots.getBody());
    Value from = slots.getInductionVar();
    Value to = arith::MinUIOp::create(b, loc, arith::AddIOp::create(b, loc, from, step), count);
    forHeads([&](Value group, Value head, int64_t heads) {
      auto part = [&](Value x, int64_t vectors, Value mask) {
        mixedTile({s, group, head, heads}, from, to, x, vectors, mask);
      };
      if (tiles)
        loop(index(0), index(tiles), tile, [&](Value x) { part(x, tileVectors, {}); });
      if (tiles < whole)
        part(index(tiles), (whole - tiles) / rowLanes, {});
      if (whole < width)
        part(index(whole), 1, maskOf(width - whole));
    });
  });
}

void Emitter::mixedTile(const Heads &heads, Value from, Value to, Value first, int64_t vectors,
                        Value mask) {
  auto placeOf = [&](int64_t r, int64_t v) {
    return Values{heads.s, heads.group, plus(heads.first, r), plus(first, v * rowLanes)};
  };
  Values sums;
  for (int64_t r = 0; r < heads.count; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      sums.push_back(load(result, placeOf(r, v), mask));
  sums = sum(from, to, 1, sums, [&](ValueRange carried, Value slot) {
    Values values, next;
    for (int64_t v = 0; v < vectors; ++v)
      values.push_back(load(right, {slot, heads.group, plus(first, v * rowLanes)}, mask));
    for (int64_t r = 0; r < heads.count; ++r) {
      Value weight = memref::LoadOp::create(
          b, loc, left, ValueRange{heads.s, heads.group, plus(heads.first, r), slot});
      Value wide = vector::BroadcastOp::create(b, loc, vector, weight);
      for (Value value : values)
        next.push_back(vector::FMAOp::create(b, loc, wide, value, carried[next.size()]));
    }
    return next;
  });
  for (int64_t r = 0; r < heads.count; ++r)
    for (int64_t v = 0; v < vectors; ++v) {
      Value total = sums[r * vectors + v];
      if (mask)
        vector::MaskedStoreOp::create(b, loc, result, placeOf(r, v), mask, total);
      else
        vector::StoreOp::create(b, loc, total, result, placeOf(r, v));
    }
}

} // namespace

/// The first slot that a window leaves in sight of the row that sees the slots before `to`, or one
/// a little before. Slots are in the order of their positions, so that two slots' positions are at
/// least as far apart as the slots.
static Value firstInWindow(OpBuilder &b, Location loc, Value window, Value to) {
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  Value limit = arith::IndexCastOp::create(
      b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, window, ValueRange{index(0)}));
  Value first = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, to, limit), index(0));
  Value isUnlimited = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, limit, index(0));
  first = arith::SelectOp::create(b, loc, isUnlimited, index(0), first);
  return arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, first, index(rowLanes)),
                               index(rowLanes));
}

SlotRange ctxc::seenSlots(OpBuilder &b, Operation *op, Value row, Value rows, Value slots) {
  Location loc = op->getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  if (!kernel::isMarked<kernel::Causal>(op))
    return {zero, slots};
  Value before = arith::SubIOp::create(b, loc, slots, rows);
  Value own = arith::AddIOp::create(b, loc, before, row);
  Value to = arith::AddIOp::create(b, loc, own, arith::ConstantIndexOp::create(b, loc, 1));
  auto name = kernel::Window(op->getContext()).getAttr(op);
  Value window =
      name ? kernel::settingOf(op->getParentOfType<FunctionOpInterface>(), name) : Value();
  return {window ? firstInWindow(b, loc, window, to) : zero, to};
}

bool ctxc::isScores(linalg::LinalgOp op) {
  return kernel::productOf(op) == kernel::Product::Scores &&
         llvm::all_of(op->getOperands(), isInLine);
}

scf::ForOp ctxc::attentionToLoops(OpBuilder &b, linalg::LinalgOp op, const CpuTarget &target) {
  std::optional<kernel::Product> product = kernel::productOf(op);
  if (!product)
    return {};
  if (!llvm::all_of(op->getOperands(), isInLine)) {
    missed(op, "attention",
           "an operand is not of float32, or its heads' numbers do not lie side by side");
    return {};
  }
  Emitter emitter(b, op, target);
  return product == kernel::Product::Scores ? emitter.scores() : emitter.mixed();
}
