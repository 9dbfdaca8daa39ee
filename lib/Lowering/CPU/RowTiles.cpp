#include "lib/Lowering/CPU/RowTiles.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

/// Numbers of a quantised row whose lines are asked for together.
constexpr int64_t togetherAhead = 128;

Value RowTiles::numbers(Value memref, Value row, Value column, Value mask) {
  auto element = cast<MemRefType>(memref.getType()).getElementType();
  return load(VectorType::get({c.lanes}, element), memref, {row, column}, mask);
}

Value RowTiles::extended(Value vector) {
  bool isFloat = cast<VectorType>(vector.getType()).getElementType().isF32();
  return isFloat ? vector : Value(arith::ExtFOp::create(b, loc, accumulator, vector));
}

/// sums += w(·) x[·, k…], where w gives W[·, k…]. The sums of one row of W lie side by side.
LoopBuilder::Values RowTiles::multiply(ValueRange sums, const Tile &tile, Value k, Value mask,
                                       WeightsOf weights) {
  SmallVector<Value> xs, next;
  for (int64_t j = 0; j < tile.count; ++j)
    xs.push_back(numbers(x, add(tile.vector, index(j)), k, mask));
  for (size_t row = 0; row < tile.rows.size(); ++row) {
    Value wide = weights(row);
    for (Value xv : xs)
      next.push_back(vector::FMAOp::create(b, loc, wide, xv, sums[next.size()]));
  }
  return next;
}

/// One step along k: sums += W[·, k…] x[·, k…].
LoopBuilder::Values RowTiles::step(ValueRange sums, const Tile &tile, Value k, Value mask) {
  return multiply(sums, tile, k, mask, [&](size_t row) {
    return extended(numbers(tile.matrix, tile.rows[row], k, mask));
  });
}

/// The partial sums of a tile of a quantised W, whose numbers stay in registers. If the
/// kernel prefetches, it reads as many blocks together as fill whole cache lines.
LoopBuilder::Values RowTiles::sumsOfBlocks(const Tile &tile) {
  auto format = cast<xf::QuantizedType>(c.stored.getElementType());
  int64_t elements = BlockReader::elements(format), blocks = c.in() / elements;
  int64_t together = tile.isPrefetched ? std::max<int64_t>(1, togetherAhead / elements) : 1;
  Values sums = zeroSums(tile);
  auto loop = [&](int64_t from, int64_t to, int64_t each) {
    if (from == to)
      return;
    sums = carried(index(from), index(to), each, sums, [&](ValueRange before, Value first) {
      Values next(before);
      if (tile.isPrefetched)
        for (const QuantizedRows::Row &row : tile.blocks)
          quantized().askAhead(row, times(first, BlockReader::bytes(format)),
                               each * BlockReader::bytes(format));
      for (int64_t i = 0; i < each; ++i)
        next = sumsOfBlock(next, tile, i ? add(first, index(i)) : first);
      return next;
    });
  };
  loop(0, blocks / together * together, together);
  loop(blocks / together * together, blocks, 1);
  return sums;
}

LoopBuilder::Values RowTiles::sumsOfBlock(ValueRange before, const Tile &tile, Value block) {
  Readers readers;
  for (const QuantizedRows::Row &row : tile.blocks)
    readers.push_back(quantized().block(row, block));
  auto format = cast<xf::QuantizedType>(c.stored.getElementType());
  const int64_t elements = BlockReader::elements(format);
  Value first = times(block, elements);
  Values next(before);
  if (c.lanes != 8)
    for (int64_t k = 0; k < elements; k += c.lanes)
      next = multiply(next, tile, add(first, index(k)), {},
                      [&](size_t row) { return readers[row]->numbers(k); });
  else
    multiplyInTurn(next, tile, first, elements, BlockReader::together(format, c.lanes), readers);
  return next;
}

/// sums += W[·, first…] x[·, first…], for `together` of the columns row by row. With 16 registers,
/// x does not stay in registers beside the sums. As an operand in memory it costs no instruction,
/// but of the same addresses LLVM would load it once for all rows, and spill it.
void RowTiles::multiplyInTurn(Values &sums, const Tile &tile, Value first, int64_t columns,
                              int64_t together, Readers &readers) {
  auto from = [&](Value address, LLVM::GEPArg number) -> Value {
    return LLVM::GEPOp::create(b, loc, address.getType(), b.getF32Type(), address, number);
  };
  Values vectors;
  for (int64_t j = 0; j < tile.count; ++j) {
    Value number = add(times(add(tile.vector, index(j)), c.in()), first);
    vectors.push_back(from(addressOf(b, loc, x), toI64(b, loc, number)));
  }
  for (int64_t begin = 0; begin < columns; begin += together)
    for (size_t row = 0; row < tile.rows.size(); ++row) {
      for (Value &vector : vectors)
        vector = hidden(b, loc, vector);
      for (int64_t k = begin; k < begin + together; k += c.lanes) {
        Value wide = readers[row]->numbers(k);
        for (int64_t j = 0; j < tile.count; ++j) {
          Value xv = LLVM::LoadOp::create(b, loc, accumulator, from(vectors[j], int32_t(k)),
                                          /*alignment=*/sizeof(float));
          Value &sum = sums[row * tile.count + j];
          sum = vector::FMAOp::create(b, loc, wide, xv, sum);
        }
      }
    }
}

/// The sums behind columns `from` to `to`, which are multiples of `stride`, itself one of the
/// lanes.
LoopBuilder::Values RowTiles::steps(Values sums, const Tile &tile, Value from, Value to,
                                    int64_t stride) {
  return carried(from, to, stride, sums, [&](ValueRange before, Value k) {
    if (tile.isPrefetched)
      for (Value row : tile.rows)
        prefetch(tile.matrix, {row, add(k, index(Contraction::aheadBytes / c.elementBytes()))});
    Values next(before);
    for (int64_t i = 0; i < stride; i += c.lanes)
      next = step(next, tile, i ? add(k, index(i)) : k, {});
    return next;
  });
}

LoopBuilder::Values RowTiles::rest(Values sums, const Tile &tile, int64_t from) {
  int64_t stride = c.lanes;
  if (tile.isPrefetched) // one prefetch for each cache line of each row
    stride = std::max(stride, lineNumbers());
  int64_t whole = from + (c.in() - from) / stride * stride;
  if (whole > from)
    sums = steps(sums, tile, index(from), index(whole), stride);
  for (; whole + c.lanes <= c.in(); whole += c.lanes)
    sums = step(sums, tile, index(whole), {});
  if (whole < c.in())
    sums = step(sums, tile, index(whole), firstLanes(c.lanes, c.in() - whole));
  return sums;
}

LoopBuilder::Values RowTiles::loadPart(const Tile &tile) {
  Values sums;
  for (int64_t i = 0, count = tile.rows.size() * tile.count; i < count; ++i)
    sums.push_back(load(accumulator, parts, {add(tile.place, index(i)), index(0)}, {}));
  return sums;
}

void RowTiles::storePart(const Tile &tile, const Values &sums) {
  for (auto [i, sum] : llvm::enumerate(sums))
    LoopBuilder::store(sum, parts, {add(tile.place, index(i)), index(0)}, {});
}

void RowTiles::compute(const Tile &tile) {
  store(tile, tile.matrix ? rest(zeroSums(tile), tile, 0) : sumsOfBlocks(tile));
}

void RowTiles::store(const Tile &tile, const Values &sums) {
  Values ofVectors;
  const int64_t rowCount = tile.rows.size(), count = sums.size();
  for (int64_t j = 0; j < tile.count; ++j)
    for (int64_t i = 0; i < rowCount; ++i)
      ofVectors.push_back(sums[i * tile.count + j]);
  // Those of several vectors are added up together: that takes fewer shuffles for each.
  for (int64_t at = 0, together; at < count; at += together) {
    together = llvm::bit_floor<uint64_t>(std::min(c.lanes, count - at));
    Value all = totals(b, loc, to_vector(ArrayRef(ofVectors).slice(at, together)));
    for (int64_t i = 0; i < together; i += rowCount)
      storeTotals(tile, all, i, add(tile.vector, index((at + i) / rowCount)));
  }
}

/// Stores the totals from lane `lane` on, one for each row of the tile, as those of `vector`.
void RowTiles::storeTotals(const Tile &tile, Value all, int64_t lane, Value vector) {
  const int64_t count = tile.outputRows.size();
  if (tile.place && count > 1) {
    Value part = vector::ExtractStridedSliceOp::create(b, loc, all, lane, count, 1);
    vector::StoreOp::create(b, loc, part, y, ValueRange{vector, tile.outputRows.front()});
    return;
  }
  for (auto [i, row] : llvm::enumerate(tile.outputRows)) {
    Value total = vector::ExtractOp::create(b, loc, all, ArrayRef<int64_t>{lane + int64_t(i)});
    memref::StoreOp::create(b, loc, total, y, ValueRange{vector, row});
  }
}
