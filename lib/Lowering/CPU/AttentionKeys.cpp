// Products of the queries of a prompt with the keys of a tile of slots, from a copy of the keys in
// which 16 slots lie side by side. A vector of products then needs no addition across its lanes,
// which for heads of 64 numbers takes longer than the multiplications. The numbers of a product are
// still added in the order of VectorSums.h: partial sums of every 16th number, then in pairs.
#include "lib/Lowering/CPU/AttentionTile.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include <functional>

using namespace mlir;
using namespace ctxc;

/// Products of so many numbers are written out; longer ones are loops.
constexpr int64_t writtenOut = 256;

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
