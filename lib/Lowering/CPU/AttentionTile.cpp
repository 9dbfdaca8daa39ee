// A vector of keys or values that is loaded serves several queries, and a step takes several slots
// (for products) or several vectors (for mixed values): with a single sum, each addition would have
// to wait for the one before it. This does not change the order of a sum: a product is summed as
// contractions are (VectorSums.h), a mixed value slot after slot.
//
// A decoded token reads its KV cache in one direction, line after line, which is the fastest way to
// read memory: a group's keys lie in line. Where those of all groups for one slot lie side by side,
// all groups of the queries take a few slots before any group takes the next ones. A token takes a
// page of keys and then a page of values of the tile before (OneRowAttention.cpp), and asks for
// both a little ahead: with requests a whole tile ahead, in one phase for keys and one for values,
// reading alone was a third slower (Sapphire Rapids). A Zen 4 does not ask where all lines are read
// in order: a request of its own holds one of the few places for lines that are on their way, until
// the line is there.
#include "lib/Lowering/CPU/AttentionTile.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

AttentionTile::AttentionTile(const OpBuilder &b, kernel::AttentionOp op, const CpuTarget &target)
    : LoopBuilder(b, op.getLoc()), op(op), asksInLine(target.asksInLine),
      lanes(VectorType::get({rowLanes}, Float32Type::get(op.getContext()))),
      bytesAhead(target.bytesAhead) {
  auto query = cast<MemRefType>(op.getQuery().getType());
  groups = query.getDimSize(1);
  repeat = query.getDimSize(2);
  width = query.getDimSize(3);
  out = cast<MemRefType>(op.getMixed().getType()).getDimSize(3);
  auto isInLineIn = [](Value state) {
    auto [strides, offset] = cast<MemRefType>(state.getType()).getStridesAndOffset();
    return strides[0] == cast<MemRefType>(state.getType()).getDimSize(2);
  };
  isInLine = isInLineIn(op.getKeys()) && isInLineIn(op.getValues());
  // Half of the registers hold sums, and the other half the factors: 16 sums with AVX-512, 4 with
  // AVX2 and NEON.
  sums = std::clamp<int64_t>(target.registers * target.lanes / rowLanes / 2, 1, 16);
}

Value AttentionTile::loadState(Value memref, ValueRange at, Value mask) {
  Type stored = cast<MemRefType>(memref.getType()).getElementType();
  Value numbers = load(VectorType::get({rowLanes}, stored), memref, at, mask);
  return stored.isF32() ? numbers : arith::ExtFOp::create(b, loc, lanes, numbers).getResult();
}

Value AttentionTile::number(double x) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(x)));
}

Value AttentionTile::scratch(ArrayRef<int64_t> shape, Type element) {
  auto type = MemRefType::get(shape, element);
  Value count =
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(type.getNumElements()));
  Value address = LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()),
                                         element, count, /*alignment=*/64);
  return memrefAt(b, loc, address, type, {});
}

//===----------------------------------------------------------------------===//
// Loops over queries
//===----------------------------------------------------------------------===//

int64_t AttentionTile::queriesAtOnce(int64_t known) const {
  int64_t most = sums >= 16 ? 4 : sums >= 4 ? 2 : 1;
  return known ? std::min(known, most) : most;
}

/// Calls body(group, index of its first query).
void AttentionTile::forGroups(const Queries &queries, llvm::function_ref<void(Value, Value)> body) {
  Value ofGroup = queries.known
                      ? index(queries.known)
                      : arith::MulIOp::create(b, loc, queries.rows, queries.heads).getResult();
  forRange(index(0), queries.groups, 1, [&](Value i) {
    body(add(queries.group, i), arith::MulIOp::create(b, loc, i, ofGroup));
  });
}

/// Calls body(i, count) for the queries of a group: `step` at a time, and then for those left.
void AttentionTile::forSome(const Queries &queries, int64_t step,
                            llvm::function_ref<void(Value, int64_t)> body) {
  auto some = [&](Value i) { body(i, step); };
  if (int64_t left = queries.known % step; queries.known) {
    if (queries.known >= step)
      forRange(index(0), index(queries.known - left), step, some);
    if (left)
      body(index(queries.known - left), left);
    return;
  }
  Value count = arith::MulIOp::create(b, loc, queries.rows, queries.heads);
  Value whole = multiples(count, step);
  forRange(index(0), whole, step, some);
  forRange(whole, count, 1, [&](Value i) { body(i, 1); });
}

AttentionTile::At AttentionTile::places(const Queries &queries, Value i, int64_t count) {
  At at;
  for (int64_t k = 0; k < count; ++k) {
    Value query = k ? add(i, index(k)) : i;
    if (queries.known) {
      at.push_back({queries.row, add(queries.head, query)});
      continue;
    }
    Value row = arith::DivUIOp::create(b, loc, query, queries.heads);
    Value head = arith::RemUIOp::create(b, loc, query, queries.heads);
    at.push_back({add(queries.row, row), add(queries.head, head)});
  }
  return at;
}

void AttentionTile::forEach(const Queries &queries,
                            llvm::function_ref<void(Value, Value, Value, Value)> body) {
  forGroups(queries, [&](Value group, Value first) {
    forSome(queries, 1, [&](Value i, int64_t) {
      auto [row, head] = places(queries, i, 1).front();
      body(group, add(first, i), row, head);
    });
  });
}

/// Calls body(first, vectors, mask) for the numbers of a value: `atOnce` vectors at a time, then
/// the whole vectors that are left, and then the rest, with a mask.
void AttentionTile::forVectors(int64_t atOnce,
                               llvm::function_ref<void(Value, int64_t, Value)> body) {
  int64_t whole = out / rowLanes, tiles = whole / atOnce * atOnce;
  if (tiles)
    forRange(index(0), index(tiles * rowLanes), atOnce * rowLanes,
             [&](Value x) { body(x, atOnce, {}); });
  if (tiles < whole)
    body(index(tiles * rowLanes), whole - tiles, {});
  if (int64_t left = out % rowLanes)
    body(index(whole * rowLanes), 1, firstLanes(rowLanes, left));
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

void AttentionTile::computeTile(const Queries &queries, Value from, Value to, Value scores,
                                const TileResults &results, int64_t part, const Copies &copies) {
  if (copies.keys)
    writeProductsOfCopy(queries, to, scores, copies);
  else
    writeProducts(queries, from, from, to, scores);
  writePowers(queries, from, to, scores, results);
  startMixed(queries, results);
  forRange(from, to, part, [&](Value begin) {
    addMixed(queries, from, begin, least(add(begin, index(part)), to), scores, results, copies);
  });
}

void AttentionTile::copyValues(Value group, Value to, const Copies &copies) {
  forRange(copies.from, to, 1, [&](Value slot) {
    Value row = sub(slot, copies.from);
    forVectors(1, [&](Value x, int64_t, Value mask) {
      store(loadState(in.values, {slot, group, x}, mask), copies.values, {row, x}, mask);
    });
  });
}

int64_t AttentionTile::slotsAtOnce(int64_t known) const {
  return llvm::bit_floor(uint64_t(sums / queriesAtOnce(known)));
}

bool AttentionTile::takesValuesAtOnce() const {
  return out <= sums / queriesAtOnce(repeat) * rowLanes;
}

bool AttentionTile::asksAhead() const {
  return asksInLine || !isInLine || !takesValuesAtOnce();
}

int64_t AttentionTile::slotsAhead(Value state) const {
  auto type = cast<MemRefType>(state.getType());
  int64_t bits = type.getDimSize(2) * type.getElementTypeBitWidth();
  return llvm::divideCeil(bytesAhead * 8, bits * (isInLine ? 1 : groups));
}

/// The scores of the slots from `slot` on, of which the mask leaves out some.
Value AttentionTile::scoreOf(Value product, Value group, Value row, Value head, Value slot,
                             Value mask) {
  Block &body = op.getScore().front();
  Value at[] = {row, group, head, slot};
  IRMapping wide;
  wide.map(body.getArgument(0), product);
  for (auto [argument, other, map] : llvm::zip(body.getArguments().drop_front(), in.others,
                                               op.getMaps().getAsValueRange<AffineMapAttr>())) {
    Values indices;
    for (AffineExpr result : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(result);
      indices.push_back(dim ? at[dim.getPosition()] : index(0));
    }
    wide.map(argument,
             map.isFunctionOfDim(3)
                 ? load(VectorType::get({rowLanes}, argument.getType()), other, indices, mask)
                 : broadcastLanes(b, loc, memref::LoadOp::create(b, loc, other, indices)));
  }
  applyToVectors(b, loc, body, wide);
  return wide.lookup(op.yielded());
}

Value AttentionTile::finite(Value x) {
  Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, number(-INFINITY));
  return arith::SelectOp::create(b, loc, none, number(0), x);
}

/// exp(x − largest).
Value AttentionTile::power(Value x, Value largest) {
  return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, x, largest));
}

Value AttentionTile::takeScores(const Place &place, Value from, Value t, Value mask, Value scores) {
  Value product = load(lanes, scores, {place.query, t}, mask);
  Value score = scoreOf(product, place.group, place.row, place.head, add(from, t), mask);
  if (mask)
    score = arith::SelectOp::create(b, loc, mask, score, broadcastLanes(b, loc, number(-INFINITY)));
  store(score, scores, {place.query, t}, mask);
  return score;
}

Value AttentionTile::takePowers(Value query, Value t, Value mask, Value largest, Value scores) {
  Value powers = power(load(lanes, scores, {query, t}, mask), largest);
  if (mask)
    powers = arith::SelectOp::create(b, loc, mask, powers, zeros(lanes));
  store(powers, scores, {query, t}, mask);
  return powers;
}

void AttentionTile::writePowers(const Queries &queries, Value from, Value to, Value scores,
                                const TileResults &results) {
  Value count = sub(to, from), whole = multiples(count, rowLanes);
  Value left = vector::CreateMaskOp::create(b, loc, VectorType::get({rowLanes}, b.getI1Type()),
                                            ValueRange{sub(count, whole)});
  Value unseen = broadcastLanes(b, loc, number(-INFINITY));
  forEach(queries, [&](Value group, Value query, Value row, Value head) {
    using Step = llvm::function_ref<Value(Value, Value, Value)>;
    auto along = [&](Value init, Step step) {
      Value all = carried(index(0), whole, rowLanes, {init}, [&](ValueRange so, Value t) {
                    return Values{step(so.front(), t, {})};
                  }).front();
      return carried(whole, count, rowLanes, {all},
                     [&](ValueRange so, Value t) { return Values{step(so.front(), t, left)}; })
          .front();
    };
    Value largest = along(unseen, [&](Value so, Value t, Value mask) -> Value {
      return arith::MaximumFOp::create(
          b, loc, so, takeScores({group, query, row, head}, from, t, mask, scores));
    });
    largest = vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXIMUMF, largest);
    Value wide = broadcastLanes(b, loc, finite(largest));
    Value total = along(zeros(lanes), [&](Value so, Value t, Value mask) -> Value {
      return arith::AddFOp::create(b, loc, so, takePowers(query, t, mask, wide, scores));
    });
    Value at = add(results.first, query);
    memref::StoreOp::create(b, loc, largest, results.largest, at);
    memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, totals(b, loc, {total}), 0),
                            results.total, at);
  });
}

void AttentionTile::startMixed(const Queries &queries, const TileResults &results) {
  forEach(queries, [&](Value, Value query, Value, Value) {
    forVectors(1, [&](Value x, int64_t, Value mask) {
      store(zeros(lanes), results.mixed, {add(results.first, query), x}, mask);
    });
  });
}

void AttentionTile::addMixed(const Queries &queries, Value first, Value from, Value to,
                             Value scores, const TileResults &results, const Copies &copies) {
  int64_t step = queriesAtOnce(queries.known);
  forGroups(queries, [&](Value group, Value firstQuery) {
    forVectors(std::max<int64_t>(sums / step, 1), [&](Value x, int64_t vectors, Value mask) {
      forSome(queries, step, [&](Value i, int64_t some) {
        addValues(queries, group, some, add(firstQuery, i), from, to, x, vectors, mask, scores,
                  first, results, copies);
      });
    });
  });
}

void AttentionTile::addValues(const Queries &queries, Value group, int64_t count, Value firstQuery,
                              Value from, Value to, Value first, int64_t vectors, Value mask,
                              Value scores, Value firstSlot, const TileResults &results,
                              const Copies &copies) {
  auto placeOf = [&](int64_t query, int64_t v) {
    return Values{add(results.first, add(firstQuery, index(query))),
                  v ? add(first, index(v * rowLanes)) : first};
  };
  Values so;
  for (int64_t query = 0; query < count; ++query)
    for (int64_t v = 0; v < vectors; ++v)
      so.push_back(load(lanes, results.mixed, placeOf(query, v), mask));
  so = carried(from, to, 1, so, [&](ValueRange sums, Value slot) {
    Values values, next;
    for (int64_t v = 0; v < vectors; ++v) {
      if (queries.known && asksAhead())
        prefetch(in.values, {add(slot, index(slotsAhead(in.values))), group, placeOf(0, v)[1]});
      values.push_back(copies.values ? load(lanes, copies.values,
                                            {sub(slot, copies.from), placeOf(0, v)[1]}, mask)
                                     : loadState(in.values, {slot, group, placeOf(0, v)[1]}, mask));
    }
    for (int64_t query = 0; query < count; ++query) {
      Value weight = broadcastLanes(
          b, loc,
          memref::LoadOp::create(b, loc, scores,
                                 ValueRange{add(firstQuery, index(query)), sub(slot, firstSlot)}));
      for (Value value : values)
        next.push_back(vector::FMAOp::create(b, loc, weight, value, sums[next.size()]));
    }
    return next;
  });
  for (int64_t query = 0; query < count; ++query)
    for (int64_t v = 0; v < vectors; ++v)
      store(so[query * vectors + v], results.mixed, placeOf(query, v), mask);
}
