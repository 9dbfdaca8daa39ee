#include "lib/Lowering/CPU/RoundedAttention.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace ctxc;

/// Rows of a register, and numbers of bfloat16 in a row.
static constexpr int64_t tileRows = 16, tileNumbers = 32;
/// Registers of queries, and of keys or values, that are multiplied together.
static constexpr int64_t together = 2;
/// Numbers from a part of a query's powers to the next part: an odd number of cache lines.
static constexpr int64_t powerStride = slotsOfTile + tileNumbers;
static_assert(slotsOfTile % (together * tileRows) == 0 && slotsOfTile % tileNumbers == 0);

/// How many parts the numbers of `op` have, 0 where they stay as they are.
static int64_t partsOf(kernel::AttentionOp op, const CpuTarget &target) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  if (!target.tiles)
    return 0;
  return kernel::isMarked<kernel::Split>(kernel)     ? split::parts
         : kernel::isMarked<kernel::Rounded>(kernel) ? 1
                                                     : 0;
}

RoundedAttention::RoundedAttention(const OpBuilder &b, kernel::AttentionOp op,
                                   const CpuTarget &target)
    : AttentionTile(b, op, target), queryParts(partsOf(op, target)),
      keyLength(llvm::alignTo(width, tileNumbers)),
      outGroups(llvm::alignTo(llvm::divideCeil(out, tileRows), together)),
      queryStride(VectorRounder::stride(width)) {
  auto ofState = [&](Value state) {
    Type element = cast<MemRefType>(state.getType()).getElementType();
    return std::min(queryParts, split::partsOf(element));
  };
  keyParts = ofState(op.getKeys());
  valueParts = ofState(op.getValues());
}

void RoundedAttention::allocateRounded(int64_t tiles) {
  Type element = b.getBF16Type();
  queries = scratch({tiles * roundedQueries, queryParts * queryStride}, element);
  powers = scratch({roundedQueries, queryParts * powerStride}, element);
  keys = scratch({keyParts * (slotsOfTile / tileRows), keyLength / 2, tileNumbers}, element);
  values = scratch({valueParts * outGroups, slotsOfTile / 2, tileNumbers}, element);
}

amx::TileType RoundedAttention::factors() {
  return amx::TileType::get({tileRows, tileNumbers}, b.getBF16Type());
}

amx::TileType RoundedAttention::sumsType() {
  return amx::TileType::get({tileRows, tileRows}, b.getF32Type());
}

SmallVector<split::Product> RoundedAttention::products(int64_t others) const {
  return queryParts == 1 ? SmallVector<split::Product>{{0, 0}} : split::products(others);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

void RoundedAttention::roundQueries(const Queries &some, Value tile) {
  auto numbers = VectorType::get({tileNumbers}, b.getF32Type());
  forEach(some, [&](Value group, Value query, Value row, Value head) {
    Value at = add(times(tile, roundedQueries), query);
    for (int64_t d = 0; d < width; d += tileNumbers) {
      Value mask = width - d < tileNumbers ? firstLanes(tileNumbers, width - d) : Value();
      Value x = load(numbers, in.query, {row, group, head, index(d)}, mask);
      for (auto [part, taken] : llvm::enumerate(split::takeParts(b, loc, x, queryParts)))
        store(taken, queries, {at, index(part * queryStride + d)}, {});
    }
  });
}

void RoundedAttention::roundSlots(Value group, Value from, Value to) {
  roundKeys(group, from, to);
  roundValues(group, from, to);
}

/// Behind the last slot, the last key is repeated; its scores are never read.
void RoundedAttention::roundKeys(Value group, Value from, Value to) {
  Type stored = cast<MemRefType>(in.keys.getType()).getElementType();
  auto row = VectorType::get({tileNumbers}, stored);
  auto pairs = VectorType::get({tileRows}, b.getI32Type());
  auto numbers = VectorType::get({tileNumbers}, b.getBF16Type());
  Value last = sub(to, index(1));
  auto convert = [&](Value slot, Value d, Value mask) {
    SmallVector<SmallVector<Value>> rows(keyParts);
    for (int64_t i = 0; i < tileRows; ++i) {
      Value key = load(row, in.keys, {least(add(slot, index(i)), last), group, d}, mask);
      for (auto [part, taken] : llvm::enumerate(split::takeParts(b, loc, key, keyParts)))
        rows[part].push_back(vector::BitCastOp::create(b, loc, pairs, taken));
    }
    Value at = over(sub(slot, from), tileRows), pair = over(d, 2);
    for (int64_t part = 0; part < keyParts; ++part) {
      transposeSquare(b, loc, rows[part]);
      for (auto [i, transposed] : llvm::enumerate(rows[part]))
        store(vector::BitCastOp::create(b, loc, numbers, transposed), keys,
              {add(at, index(part * (slotsOfTile / tileRows))), add(pair, index(i)), index(0)}, {});
    }
  };
  int64_t whole = width / tileNumbers * tileNumbers;
  forRange(from, to, tileRows, [&](Value slot) {
    if (whole)
      forRange(index(0), index(whole), tileNumbers, [&](Value d) { convert(slot, d, {}); });
    if (whole < width)
      convert(slot, index(whole), firstLanes(tileNumbers, width - whole));
  });
}

/// Behind the last slot there are zeros, up to a whole register: these slots have the power 0.
void RoundedAttention::roundValues(Value group, Value from, Value to) {
  Type stored = cast<MemRefType>(in.values.getType()).getElementType();
  auto row = VectorType::get({tileRows}, stored);
  auto present = VectorType::get({tileRows}, b.getI1Type());
  Value last = sub(to, index(1)), count = sub(to, from);
  Value end = multiples(add(count, index(tileNumbers - 1)), tileNumbers);
  forRange(index(0), end, 2, [&](Value first) {
    forRange(index(0), index(outGroups), 1, [&](Value g) {
      Value x = times(g, tileRows);
      Value left = sub(index(out), least(x, index(out)));
      SmallVector<SmallVector<Value>> both;
      for (int64_t i = 0; i < 2; ++i) {
        Value slot = add(first, index(i));
        Value some =
            arith::SelectOp::create(b, loc, isLess(slot, count), left, index(0)).getResult();
        Value mask = vector::CreateMaskOp::create(b, loc, present, some);
        Value value = load(row, in.values,
                           {least(add(from, slot), last), group, least(x, index(out - 1))}, mask);
        both.push_back(split::takeParts(b, loc, value, valueParts));
      }
      for (int64_t part = 0; part < valueParts; ++part)
        store(vector::InterleaveOp::create(b, loc, both[0][part], both[1][part]), values,
              {add(g, index(part * outGroups)), over(first, 2), index(0)}, {});
    });
  });
}

void RoundedAttention::roundPowers(const Queries &some, Value count, Value scores) {
  auto numbers = VectorType::get({tileNumbers}, b.getF32Type());
  auto present = VectorType::get({tileNumbers}, b.getI1Type());
  forEach(some, [&](Value, Value query, Value, Value) {
    forRange(index(0), count, tileNumbers, [&](Value t) {
      Value mask = vector::CreateMaskOp::create(b, loc, present, sub(count, t));
      Value x = load(numbers, scores, {query, t}, mask);
      for (auto [part, taken] : llvm::enumerate(split::takeParts(b, loc, x, queryParts)))
        store(taken, powers, {query, add(t, index(part * powerStride))}, {});
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

LoopBuilder::Values RoundedAttention::multiply(Value end, ArrayRef<split::Product> products,
                                               Factor query, Factor other) {
  Values zero;
  for (int64_t i = 0; i < together * together; ++i)
    zero.push_back(amx::TileZeroOp::create(b, loc, sumsType()));
  return carried(index(0), end, tileNumbers, zero, [&](ValueRange sums, Value k) {
    // The parts of a product are in registers when it has a factor in common with the one before.
    Values next(sums), xs, ys;
    int64_t x = -1, y = -1;
    for (split::Product product : products) {
      for (int64_t i = 0; i < together && x != product.x; ++i)
        xs.resize(together), xs[i] = query(product.x, i, k);
      for (int64_t i = 0; i < together && y != product.w; ++i)
        ys.resize(together), ys[i] = other(product.w, i, k);
      x = product.x;
      y = product.w;
      for (auto [i, sum] : llvm::enumerate(next))
        sum = amx::TileMulFOp::create(b, loc, sumsType(), xs[i / together], ys[i % together], sum);
    }
    return next;
  });
}

void RoundedAttention::computeRounded(const Queries &some, Value tile, Value from, Value to,
                                      Value scores, const TileResults &results) {
  Value count = sub(to, from);
  auto loadFactor = [&](Value memory, ValueRange at) -> Value {
    return amx::TileLoadOp::create(b, loc, factors(), memory, at);
  };
  auto storeSums = [&](ValueRange sums, Value memory, Value column) {
    for (auto [i, sum] : llvm::enumerate(sums))
      amx::TileStoreOp::create(
          b, loc, memory,
          ValueRange{index(i / together * tileRows), add(column, index(i % together * tileRows))},
          sum);
  };
  forRange(index(0), count, together * tileRows, [&](Value slot) {
    Values sums = multiply(
        index(keyLength), products(keyParts),
        [&](int64_t part, int64_t i, Value k) {
          return loadFactor(queries, {add(times(tile, roundedQueries), index(i * tileRows)),
                                      add(k, index(part * queryStride))});
        },
        [&](int64_t part, int64_t i, Value k) {
          Value at = add(over(slot, tileRows), index(part * (slotsOfTile / tileRows) + i));
          return loadFactor(keys, {at, over(k, 2), index(0)});
        });
    storeSums(sums, scores, slot);
  });
  writePowers(some, from, to, scores, results);
  roundPowers(some, count, scores);
  forRange(index(0), index(outGroups), together, [&](Value g) {
    Values sums = multiply(
        count, products(valueParts),
        [&](int64_t part, int64_t i, Value k) {
          return loadFactor(powers, {index(i * tileRows), add(k, index(part * powerStride))});
        },
        [&](int64_t part, int64_t i, Value k) {
          return loadFactor(values, {add(g, index(part * outGroups + i)), over(k, 2), index(0)});
        });
    storeSums(sums, results.mixed, times(g, tileRows));
  });
}
