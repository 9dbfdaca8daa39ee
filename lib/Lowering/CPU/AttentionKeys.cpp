// Products of queries with the keys of a tile of slots. The numbers of a product are added in the
// order of VectorSums.h: partial sums of every 16th number, then in pairs.
//
// For a prompt's queries, the keys are copied so that 16 slots lie side by side. A vector of
// products then needs no addition across its lanes, which for heads of 64 numbers takes longer than
// the multiplications.
#include "lib/Lowering/CPU/AttentionTile.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include <functional>

using namespace mlir;
using namespace ctxc;

/// Products of so many numbers are written out; longer ones are loops.
constexpr int64_t writtenOut = 256;

//===----------------------------------------------------------------------===//
// From where the keys lie
//===----------------------------------------------------------------------===//

void AttentionTile::writeProducts(const Queries &queries, Value first, Value from, Value to,
                                  Value scores) {
  int64_t step = queriesAtOnce(queries.known), slots = slotsAtOnce(queries.known);
  auto take = [&](Value slot, int64_t count) {
    forGroups(queries, [&](Value group, Value firstQuery) {
      forSome(queries, step, [&](Value i, int64_t some) {
        writeProduct(queries, group, i, some, slot, count, scores, add(firstQuery, i), first);
      });
    });
  };
  Value whole = add(from, multiples(sub(to, from), slots));
  forRange(from, whole, slots, [&](Value slot) { take(slot, slots); });
  if (slots > 1)
    forRange(whole, to, 1, [&](Value slot) { take(slot, 1); });
}

LoopBuilder::Values AttentionTile::products(Value group, const At &at, Value from, int64_t slots,
                                            bool asks) {
  auto step = [&](ValueRange sums, Value d, Value mask) {
    Values ofQueries, next;
    for (auto [row, head] : at)
      ofQueries.push_back(load(lanes, in.query, {row, group, head, d}, mask));
    for (int64_t t = 0; t < slots; ++t) {
      Value key = loadState(in.keys, {t ? add(from, index(t)) : from, group, d}, mask);
      if (asks)
        prefetch(in.keys, {add(from, index(t + slotsAhead(in.keys))), group, d});
      for (Value query : ofQueries)
        next.push_back(vector::FMAOp::create(b, loc, key, query, sums[next.size()]));
    }
    return next;
  };
  int64_t whole = width / rowLanes * rowLanes;
  Values sums(slots * at.size(), zeros(lanes));
  if (whole)
    sums = carried(index(0), index(whole), rowLanes, sums,
                   [&](ValueRange carried, Value d) { return step(carried, d, {}); });
  if (whole < width)
    sums = step(sums, index(whole), firstLanes(rowLanes, width - whole));
  return sums;
}

void AttentionTile::writeProduct(const Queries &queries, Value group, Value query, int64_t count,
                                 Value slot, int64_t slots, Value scores, Value firstQuery,
                                 Value firstSlot) {
  At at = places(queries, query, count);
  const bool asks = queries.known && asksAhead();
  // A token's keys are read one after the other, line after line. Each number of a query is then
  // loaded again for each slot; with shorter registers that takes longer than multiplying.
  const int64_t together = queries.known && copiesKeys() ? 1 : slots;
  Values sums;
  for (int64_t t = 0; t < slots; t += together)
    llvm::append_range(sums, products(group, at, t ? add(slot, index(t)) : slot, together, asks));
  for (size_t query = 0; query < at.size(); ++query) {
    Values ofQuery;
    for (int64_t t = 0; t < slots; ++t)
      ofQuery.push_back(sums[t * at.size() + query]);
    vector::StoreOp::create(b, loc, totals(b, loc, ofQuery), scores,
                            {add(firstQuery, index(query)), sub(slot, firstSlot)});
  }
}

//===----------------------------------------------------------------------===//
// From a copy
//===----------------------------------------------------------------------===//

/// Behind the last slot, the last key is repeated; its products are never read.
void AttentionTile::copyKeys(Value group, Value to, const Copies &copies) {
  Value last = sub(to, index(1));
  forRange(copies.from, to, rowLanes, [&](Value slot) {
    auto copy = [&](Value d, int64_t numbers) {
      Value mask = numbers < rowLanes ? firstLanes(rowLanes, numbers) : Value();
      Values rows;
      for (int64_t i = 0; i < rowLanes; ++i)
        rows.push_back(loadState(in.keys, {least(add(slot, index(i)), last), group, d}, mask));
      transposeSquare(b, loc, rows);
      for (int64_t i = 0; i < numbers; ++i)
        store(rows[i], copies.keys,
              {over(sub(slot, copies.from), rowLanes), add(d, index(i)), index(0)}, {});
    };
    int64_t whole = width / rowLanes * rowLanes;
    forRange(index(0), index(whole), rowLanes, [&](Value d) { copy(d, rowLanes); });
    if (whole < width)
      copy(index(whole), width - whole);
  });
}

void AttentionTile::writeProductsOfCopy(const Queries &queries, Value to, Value scores,
                                        const Copies &copies) {
  forRange(index(0), sub(to, copies.from), rowLanes, [&](Value slot) {
    Value vector = over(slot, rowLanes);
    forSome(queries, queriesAtOnce(queries.known), [&](Value first, int64_t count) {
      At at = places(queries, first, count);
      auto added = [&](ValueRange sums, Value d) {
        Value keys = load(lanes, copies.keys, {vector, d, index(0)}, {});
        Values next;
        for (auto [sum, place] : llvm::zip(sums, at)) {
          auto [row, head] = place;
          Value number =
              memref::LoadOp::create(b, loc, in.query, ValueRange{row, queries.group, head, d});
          next.push_back(vector::FMAOp::create(b, loc, keys, broadcastLanes(b, loc, number), sum));
        }
        return next;
      };
      // The sums of every `step`th number from `d` on.
      std::function<Values(int64_t, int64_t)> sumsOf = [&](int64_t d, int64_t step) -> Values {
        Values sums(count, zeros(lanes));
        if (step == rowLanes) {
          if (width > writtenOut)
            return carried(index(d), index(width), rowLanes, sums, added);
          for (; d < width; d += rowLanes)
            sums = added(sums, index(d));
          return sums;
        }
        Values even = sumsOf(d, 2 * step), odd = sumsOf(d + step, 2 * step);
        for (auto [sum, x, y] : llvm::zip(sums, even, odd))
          sum = arith::AddFOp::create(b, loc, x, y);
        return sums;
      };
      for (auto [i, sum] : llvm::enumerate(sumsOf(0, 1)))
        store(sum, scores, {add(first, index(i)), slot}, {});
    });
  });
}
