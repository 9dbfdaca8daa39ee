// Attention of a single row, as a decoded token is. A unit of work is a tile of slots for some
// groups of heads. While the keys of a unit are multiplied, page by page, so are the values of the
// unit before it, and a part of both units' softmax is computed: with first all keys of a tile,
// then the softmax, and then all values, the processor asked for no memory while the softmax of the
// tile was computed, and for little while the sums of products were. The tiles are merged
// afterwards, query by query.
#include "lib/Lowering/CPU/AttentionEmitter.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

/// For a single row: how many bytes of keys are multiplied before as many values are.
constexpr int64_t bytesOfPart = 4096;

/// Units are counted in the order of their memory.
AttentionEmitter::UnitOfOne AttentionEmitter::unitOfOne(Value unit) {
  Value tile, group;
  if (isInLine) {
    Value all = arith::MaxUIOp::create(b, loc, tilesOfOne(), index(1));
    group = arith::DivUIOp::create(b, loc, unit, all);
    tile = arith::RemUIOp::create(b, loc, unit, all);
  } else {
    int64_t units = llvm::divideCeil(groups, unitGroups);
    tile = over(unit, units);
    group = times(sub(unit, times(tile, units)), unitGroups);
  }
  Value some =
      groups % unitGroups ? least(index(unitGroups), sub(index(groups), group)) : index(unitGroups);
  Value from = add(firstOfOne(), times(tile, slotsOfTile));
  Value first = times(add(times(tile, groups), group), repeat);
  return {{index(0), index(1), group, some, index(0), index(repeat), repeat},
          from,
          least(add(from, index(slotsOfTile)), slots),
          {tiles[0], tiles[1], tiles[2], first}};
}

func::FuncOp AttentionEmitter::writeOne() {
  auto [function, begin, end] = beginFunction("_one");
  Value even = numbers({unitGroups * repeat, slotsOfTile});
  Value odd = numbers({unitGroups * repeat, slotsOfTile});
  Softmax softmax{numbers({unitGroups * repeat, rowLanes}), numbers({unitGroups * repeat}),
                  numbers({unitGroups * repeat, rowLanes})};
  Value first = begin, behind = end;
  forRange(first, add(behind, index(1)), 1, [&](Value unit) {
    UnitOfOne now = unitOfOne(unit), before = unitOfOne(sub(unit, index(1)));
    Value isNow = isLess(unit, behind), isBefore = isLess(first, unit);
    Value isOdd = arith::TruncIOp::create(b, loc, b.getI1Type(),
                                          arith::IndexCastOp::create(b, loc, b.getI64Type(), unit));
    Value scores = arith::SelectOp::create(b, loc, isOdd, odd, even);
    Value powers = arith::SelectOp::create(b, loc, isOdd, even, odd);
    ifThen(isNow, [&] {
      startMixed(now.queries, now.results);
      startScores(now, softmax);
    });
    const int64_t part = slotsOfPart(), some = std::max(part, rowLanes);
    auto forLanes = [&](Value from, llvm::function_ref<void(Value)> body) {
      forRange(from, add(from, index(some)), rowLanes, body);
    };
    forRange(index(0), index(slotsOfTile), some, [&](Value from) {
      ifThen(isBefore,
             [&] { forLanes(from, [&](Value t) { addPowers(before, t, powers, softmax); }); });
      forRange(from, add(from, index(some)), part, [&](Value i) {
        auto ofPart = [&](const UnitOfOne &unit, llvm::function_ref<void(Value, Value)> body) {
          Value from = least(add(unit.from, i), unit.to);
          body(from, least(add(from, index(part)), unit.to));
        };
        ifThen(isNow, [&] {
          ofPart(now, [&](Value from, Value to) {
            writeProducts(now.queries, now.from, from, to, scores);
          });
        });
        ifThen(isBefore, [&] {
          ofPart(before, [&](Value from, Value to) {
            addMixed(before.queries, before.from, from, to, powers, before.results);
          });
        });
      });
      ifThen(isNow, [&] { forLanes(from, [&](Value t) { addScores(now, t, scores, softmax); }); });
    });
    ifThen(isBefore, [&] { finishPowers(before, softmax); });
    ifThen(isNow, [&] { finishScores(now, softmax); });
  });
  func::ReturnOp::create(b, loc);
  return function;
}

//===----------------------------------------------------------------------===//
// The softmax of a unit
//===----------------------------------------------------------------------===//

void AttentionEmitter::startScores(const UnitOfOne &unit, const Softmax &softmax) {
  Value unseen = broadcastLanes(b, loc, number(-INFINITY));
  forEach(unit.queries, [&](Value, Value query, Value, Value) {
    store(unseen, softmax.largest, {query, index(0)}, {});
  });
}

/// Which of 16 slots from the `t`th on the unit has.
Value AttentionEmitter::present(const UnitOfOne &unit, Value t) {
  return vector::CreateMaskOp::create(b, loc, VectorType::get({rowLanes}, b.getI1Type()),
                                      ValueRange{sub(sub(unit.to, unit.from), t)});
}

void AttentionEmitter::addScores(const UnitOfOne &unit, Value t, Value scores,
                                 const Softmax &softmax) {
  Value mask = present(unit, t);
  auto lanes = VectorType::get({rowLanes}, b.getF32Type());
  forEach(unit.queries, [&](Value group, Value query, Value row, Value head) {
    Value so = load(lanes, softmax.largest, {query, index(0)}, {});
    Value taken = takeScores({group, query, row, head}, unit.from, t, mask, scores);
    store(arith::MaximumFOp::create(b, loc, so, taken), softmax.largest, {query, index(0)}, {});
  });
}

void AttentionEmitter::finishScores(const UnitOfOne &unit, const Softmax &softmax) {
  auto lanes = VectorType::get({rowLanes}, b.getF32Type());
  forEach(unit.queries, [&](Value, Value query, Value, Value) {
    Value all = load(lanes, softmax.largest, {query, index(0)}, {});
    Value largest = vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXIMUMF, all);
    memref::StoreOp::create(b, loc, largest, unit.results.largest, add(unit.results.first, query));
    memref::StoreOp::create(b, loc, finite(largest), softmax.subtracted, query);
    store(zeros(lanes), softmax.sums, {query, index(0)}, {});
  });
}

void AttentionEmitter::addPowers(const UnitOfOne &unit, Value t, Value scores,
                                 const Softmax &softmax) {
  Value mask = present(unit, t);
  auto lanes = VectorType::get({rowLanes}, b.getF32Type());
  forEach(unit.queries, [&](Value, Value query, Value, Value) {
    Value subtracted = memref::LoadOp::create(b, loc, softmax.subtracted, query);
    Value taken = takePowers(query, t, mask, broadcastLanes(b, loc, subtracted), scores);
    Value so = load(lanes, softmax.sums, {query, index(0)}, {});
    store(arith::AddFOp::create(b, loc, so, taken), softmax.sums, {query, index(0)}, {});
  });
}

void AttentionEmitter::finishPowers(const UnitOfOne &unit, const Softmax &softmax) {
  auto lanes = VectorType::get({rowLanes}, b.getF32Type());
  forEach(unit.queries, [&](Value, Value query, Value, Value) {
    Value all = load(lanes, softmax.sums, {query, index(0)}, {});
    memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, totals(b, loc, {all}), 0),
                            unit.results.total, add(unit.results.first, query));
  });
}

/// How many slots of a unit's keys are multiplied before the values of the unit before it are. On a
/// Zen 4, few are better where values are gone through several times.
int64_t AttentionEmitter::slotsOfPart() {
  if (!asksInLine && !takesValuesAtOnce())
    return slotsAtOnce(repeat);
  int64_t bytes = cast<MemRefType>(op.getKeys().getType()).getElementTypeBitWidth() / 8;
  int64_t slots = bytesOfPart / (unitGroups * width * bytes);
  return std::clamp<int64_t>(llvm::bit_floor(uint64_t(slots)), slotsAtOnce(repeat), slotsOfTile);
}

/// Merges the tiles of a single row; the range is that of its queries.
func::FuncOp AttentionEmitter::writeMerge() {
  auto [function, begin, end] = beginFunction("_merge");
  Running running{numbers({1}), numbers({1}), index(0), index(0), {}, {}};
  Value all = tilesOfOne();
  forRange(begin, end, 1, [&](Value query) {
    Running own = running;
    own.group = over(query, repeat);
    own.head = sub(query, times(own.group, repeat));
    start(own);
    forRange(index(0), all, 1, [&](Value tile) {
      merge(own, {tiles[0], tiles[1], tiles[2], times(tile, groups * repeat)}, query);
    });
    finish(own);
  });
  func::ReturnOp::create(b, loc);
  return function;
}
