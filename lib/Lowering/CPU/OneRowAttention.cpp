// Attention of a single row, as a decoded token is. A unit of work is a tile of slots for some
// groups of heads. While the keys of a unit are multiplied, page by page, so are the values of the
// unit before it: with first all keys of a tile and then all of its values, the processor asked for
// no memory while the softmax of the tile was computed, and for little while the sums of products
// were. The tiles are merged afterwards, query by query.
#include "lib/Lowering/CPU/AttentionEmitter.h"

using namespace mlir;
using namespace ctxc;

/// For a single row: how many bytes of keys are multiplied before as many values are.
constexpr int64_t bytesOfPart = 4096;

AttentionEmitter::UnitOfOne AttentionEmitter::unitOfOne(Value unit) {
  int64_t units = llvm::divideCeil(groups, unitGroups);
  Value tile = over(unit, units), group = times(sub(unit, times(tile, units)), unitGroups);
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
  Value first = begin, behind = end;
  forRange(first, add(behind, index(1)), 1, [&](Value unit) {
    UnitOfOne now = unitOfOne(unit), before = unitOfOne(sub(unit, index(1)));
    Value isNow = isLess(unit, behind), isBefore = isLess(first, unit);
    Value isOdd = arith::TruncIOp::create(b, loc, b.getI1Type(),
                                          arith::IndexCastOp::create(b, loc, b.getI64Type(), unit));
    Value scores = arith::SelectOp::create(b, loc, isOdd, odd, even);
    Value powers = arith::SelectOp::create(b, loc, isOdd, even, odd);
    ifThen(isNow, [&] { startMixed(now.queries, now.results); });
    int64_t part = slotsOfPart();
    forRange(index(0), index(slotsOfTile), part, [&](Value i) {
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
    ifThen(isNow, [&] { writePowers(now.queries, now.from, now.to, scores, now.results); });
  });
  func::ReturnOp::create(b, loc);
  return function;
}

/// How many slots of a unit's keys are multiplied before the values of the unit before it are.
int64_t AttentionEmitter::slotsOfPart() {
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
