#include "lib/Lowering/CPU/RowContraction.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Rows of W in a tile.
constexpr int64_t tileRows = 4;
/// Vectors x in a tile, so that the sums, one register for each x and one for W fill the register
/// file.
int64_t vectorsOfATile(const Contraction &c) { return c.registers >= 32 ? 6 : 3; }
/// Elements of a panel: 256 KB of float32.
constexpr int64_t panelSize = 1 << 16;
constexpr int64_t maxPanelRows = 64;

/// Rows of W that are read side by side where the number of vectors is not known, or products are
/// of integers.
constexpr int64_t anyStreams = 2;
/// From this many bytes on, the vectors x do not all stay in the first-level cache beside W.
/// `longAlone` is for a thread that reads all of W, `longShared` for one of several threads, two of
/// which may share a core.
constexpr int64_t longAlone = 9 << 10, longShared = 8 << 10;
/// Numbers of a quantised row whose lines are asked for together.
constexpr int64_t togetherAhead = 128;

/// How a range of rows is read in a single pass when there are few vectors. A tile takes one row of
/// each stream; half of the registers hold its sums.
Reading readingFor(const Contraction &c, int64_t vectors, int64_t longBytes) {
  const bool isShort = vectors * c.in() * int64_t(sizeof(float)) < longBytes;
  const bool isFloat = c.weight.getElementType().isF32();
  Reading reading = c.stored  ? c.readingOfBlocks()
                    : isFloat ? (isShort ? c.readings.f32 : c.readings.longF32)
                              : (isShort ? c.readings.half : c.readings.longHalf);
  reading.streams = std::min({reading.streams, c.lanes, c.registers / 2 / vectors});
  return reading;
}

class RowEmitter : LoopBuilder {
public:
  RowEmitter(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &given)
      : LoopBuilder(b, loc), c(c), accumulator(VectorType::get({c.lanes}, b.getF32Type())),
        w(given.w), x(given.x), y(given.y), rows(given.rows), address(given.address),
        scratchAddress(given.scratchAddress), scratch(given.scratch) {}

  void fewVectors(Value begin, Value end);
  void blocked(Value begin, Value end);

private:
  int64_t lineNumbers() const { return Contraction::lineBytes / c.elementBytes(); }

  /// Emits reads of a quantised W.
  QuantizedRows quantized() { return {b, loc, c, address, scratchAddress, scratch}; }
  bool readsBlocks() const {
    return c.stored &&
           BlockReader::reads(cast<xf::QuantizedType>(c.stored.getElementType()), c.in());
  }

  void copyRow(Value row, Value intoRow);

  // Ranges of rows
  void anyVectors(ArrayRef<Value> rowsOfW);
  void fewOfBlocks(ArrayRef<Value> rowsOfW, int64_t vectors, bool asksAhead);
  /// The next panel, which is prefetched while the current one is multiplied.
  struct NextPanel {
    Value from;  ///< its first row
    Value count; ///< its elements
    Value share; ///< how many of them each tile prefetches
  };
  NextPanel shareOut(Value from, Value end, int64_t vectors);
  void panel(Value from, Value to, int64_t vectors, Value s, const NextPanel &next);
  void prefetchShare(const NextPanel &next, Value tile);

  // Tiles
  struct Tile {
    Value matrix;                  ///< W, or rows of it in float32; null where blocks are read
    SmallVector<Value> rows;       ///< rows of the matrix
    SmallVector<Value> outputRows; ///< the columns of y that they become
    Value vector;                  ///< index of the tile's first vector
    int64_t count;                 ///< how many vectors
    bool isPrefetched = false;     ///< whether lines of the matrix are prefetched
    SmallVector<QuantizedRows::Row> blocks = {}; ///< the rows of a quantised W
  };
  Value numbers(Value memref, Value row, Value column, Value mask);
  Value extended(Value vector);
  using WeightsOf = llvm::function_ref<Value(size_t row)>;
  SmallVector<Value> multiply(ValueRange sums, const Tile &tile, Value k, Value mask, WeightsOf w);
  SmallVector<Value> step(ValueRange sums, const Tile &tile, Value k, Value mask);
  SmallVector<Value> sumsOf(const Tile &tile);
  SmallVector<Value> sumsOfBlocks(const Tile &tile);
  SmallVector<Value> sumsOfBlock(ValueRange before, const Tile &tile, Value block);
  void compute(const Tile &tile);

  const Contraction &c;
  VectorType accumulator;
  Value w, x, y, rows, address, scratchAddress, scratch;
};

//===----------------------------------------------------------------------===//
// Rows in float32
//===----------------------------------------------------------------------===//

void RowEmitter::copyRow(Value row, Value intoRow) {
  int64_t whole = c.in() / c.lanes * c.lanes;
  if (whole > 0)
    forRange(index(0), index(whole), c.lanes, [&](Value k) {
      vector::StoreOp::create(b, loc, extended(numbers(w, row, k, {})), scratch,
                              ValueRange{intoRow, k});
    });
  forRange(index(whole), index(c.in()), 1, [&](Value k) {
    Value number = memref::LoadOp::create(b, loc, w, ValueRange{row, k});
    if (!number.getType().isF32())
      number = arith::ExtFOp::create(b, loc, b.getF32Type(), number);
    memref::StoreOp::create(b, loc, number, scratch, ValueRange{intoRow, k});
  });
}

//===----------------------------------------------------------------------===//
// Ranges of rows
//===----------------------------------------------------------------------===//

void RowEmitter::fewVectors(Value begin, Value end) {
  auto any = [&](ArrayRef<Value> at) { anyVectors(at); };
  auto isOfAny = [&](int64_t count) {
    return readingFor(c, count, longShared) == Reading{anyStreams, false};
  };
  if (c.stored ? !readsBlocks() : isOfAny(1) && isOfAny(2))
    return streamed(begin, end, anyStreams, any);
  Value isAlone =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, sub(end, begin), index(c.out()));
  const int64_t counts[] = {1, 2};
  auto branch = scf::IndexSwitchOp::create(b, loc, TypeRange(), rows, counts, std::size(counts));
  OpBuilder::InsertionGuard guard(b);
  for (auto [i, count] : llvm::enumerate(counts)) {
    Reading alone = readingFor(c, count, longAlone), shared = readingFor(c, count, longShared);
    auto read = [&, count = count](Reading reading) {
      streamed(begin, end, reading.streams, [&](ArrayRef<Value> at) {
        SmallVector<Value> rowsOfW(at);
        if (c.stored)
          return fewOfBlocks(at, count, reading.asksAhead);
        compute({w, rowsOfW, rowsOfW, index(0), count, reading.asksAhead});
      });
    };
    b.createBlock(&branch.getCaseRegions()[i]);
    if (alone == shared) {
      read(shared);
    } else {
      auto choice = scf::IfOp::create(b, loc, isAlone, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard inBranch(b);
      b.setInsertionPointToStart(choice.thenBlock());
      read(alone);
      b.setInsertionPointToStart(choice.elseBlock());
      read(shared);
    }
    scf::YieldOp::create(b, loc);
  }
  b.createBlock(&branch.getDefaultRegion());
  streamed(begin, end, anyStreams, any);
  scf::YieldOp::create(b, loc);
}

/// Multiplies the rows `at` with every vector, whatever their number is.
void RowEmitter::anyVectors(ArrayRef<Value> at) {
  SmallVector<Value> outputRows(at), from(at);
  if (c.stored)
    for (auto [i, row] : llvm::enumerate(at)) {
      from[i] = index(i);
      quantized().decode(row, index(1), from[i]);
    }
  auto tiles = [&](Value begin, Value end, int64_t count) {
    forRange(begin, end, count,
             [&](Value s) { compute({c.stored ? scratch : w, from, outputRows, s, count}); });
  };
  Value pairs = times(over(rows, 2), 2);
  tiles(index(0), pairs, 2);
  tiles(pairs, rows, 1);
}

/// Multiplies the rows `at` of a quantised W with one or two vectors, in registers. Rows whose
/// scales have another span are decoded into memory.
void RowEmitter::fewOfBlocks(ArrayRef<Value> at, int64_t vectors, bool asksAhead) {
  SmallVector<Value> rowsOfW(at);
  Tile tile{{}, rowsOfW, rowsOfW, index(0), vectors, asksAhead};
  for (auto [slot, row] : llvm::enumerate(at))
    tile.blocks.push_back(quantized().open(row, slot));
  Value areRead = quantized().areRead(tile.blocks);
  if (!areRead)
    return compute(tile);
  auto branch = scf::IfOp::create(b, loc, areRead, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  compute(tile);
  b.setInsertionPointToStart(branch.elseBlock());
  anyVectors(at);
}

void RowEmitter::blocked(Value begin, Value end) {
  int64_t vectors = vectorsOfATile(c);
  forRange(begin, end, panelRows(c), [&](Value from) {
    Value to = least(add(from, index(panelRows(c))), end);
    if (c.stored)
      quantized().decode(from, sub(to, from), index(0));
    else
      forRange(from, to, 1, [&](Value row) { copyRow(row, sub(row, from)); });
    // The last tile is a whole one too: it repeats some vectors of the tile before it, and gets the
    // same sums.
    Value last = sub(rows, index(vectors));
    NextPanel next = shareOut(to, end, vectors);
    forRange(index(0), rows, vectors,
             [&](Value s) { panel(from, to, vectors, least(s, last), next); });
  });
}

/// The panel from row `from` on, divided among the tiles of the panel before it for prefetching.
RowEmitter::NextPanel RowEmitter::shareOut(Value from, Value end, int64_t vectors) {
  Value count = times(least(sub(end, from), index(panelRows(c))), c.in());
  Value tiles = times(over(add(rows, index(vectors - 1)), vectors), panelRows(c) / tileRows);
  Value lines = arith::CeilDivUIOp::create(b, loc, over(count, lineNumbers()), tiles);
  return {from, count, times(lines, lineNumbers())};
}

/// Multiplies rows `from` to `to` with `vectors` vectors from `s` on.
void RowEmitter::panel(Value from, Value to, int64_t vectors, Value s, const NextPanel &next) {
  Value before = times(over(add(s, index(vectors - 1)), vectors), panelRows(c) / tileRows);
  auto tiles = [&](Value begin, Value end, int64_t count) {
    forRange(begin, end, count, [&](Value row) {
      if (!c.stored && count == tileRows)
        prefetchShare(next, add(before, over(sub(row, from), tileRows)));
      Tile tile{scratch, {}, {}, s, vectors};
      for (int64_t i = 0; i < count; ++i) {
        tile.outputRows.push_back(add(row, index(i)));
        tile.rows.push_back(sub(tile.outputRows.back(), from));
      }
      compute(tile);
    });
  };
  Value whole = add(from, times(over(sub(to, from), tileRows), tileRows));
  tiles(from, whole, tileRows);
  tiles(whole, to, 1);
}

/// Prefetches the part of the next panel that falls to `tile`.
void RowEmitter::prefetchShare(const NextPanel &next, Value tile) {
  Value first = arith::MulIOp::create(b, loc, tile, next.share);
  forRange(first, least(add(first, next.share), next.count), lineNumbers(),
           [&](Value k) { prefetch(w, {next.from, k}); });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Loads as many elements as one register holds in float32.
Value RowEmitter::numbers(Value memref, Value row, Value column, Value mask) {
  auto element = cast<MemRefType>(memref.getType()).getElementType();
  return load(VectorType::get({c.lanes}, element), memref, {row, column}, mask);
}

Value RowEmitter::extended(Value vector) {
  bool isFloat = cast<VectorType>(vector.getType()).getElementType().isF32();
  return isFloat ? vector : Value(arith::ExtFOp::create(b, loc, accumulator, vector));
}

/// sums += w(·) x[·, k…], where w gives W[·, k…]. The sums of one row of W lie side by side.
SmallVector<Value> RowEmitter::multiply(ValueRange sums, const Tile &tile, Value k, Value mask,
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
SmallVector<Value> RowEmitter::step(ValueRange sums, const Tile &tile, Value k, Value mask) {
  return multiply(sums, tile, k, mask, [&](size_t row) {
    return extended(numbers(tile.matrix, tile.rows[row], k, mask));
  });
}

/// The partial sums of a tile of a quantised W, whose numbers stay in registers. Where lines are
/// asked for ahead, so many blocks go together as have whole lines.
SmallVector<Value> RowEmitter::sumsOfBlocks(const Tile &tile) {
  auto format = cast<xf::QuantizedType>(c.stored.getElementType());
  int64_t elements = BlockReader::elements(format), blocks = c.in() / elements;
  int64_t together = tile.isPrefetched ? std::max<int64_t>(1, togetherAhead / elements) : 1;
  SmallVector<Value> sums(tile.rows.size() * tile.count, zeros(accumulator));
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

SmallVector<Value> RowEmitter::sumsOfBlock(ValueRange before, const Tile &tile, Value block) {
  int64_t elements = BlockReader::elements(cast<xf::QuantizedType>(c.stored.getElementType()));
  SmallVector<std::unique_ptr<BlockReader>> readers;
  for (const QuantizedRows::Row &row : tile.blocks)
    readers.push_back(quantized().block(row, block));
  Values next(before);
  for (int64_t k = 0; k < elements; k += c.lanes)
    next = multiply(next, tile, add(times(block, elements), index(k)), {},
                    [&](size_t row) { return readers[row]->numbers(k); });
  return next;
}

SmallVector<Value> RowEmitter::sumsOf(const Tile &tile) {
  SmallVector<Value> sums(tile.rows.size() * tile.count, zeros(accumulator));
  int64_t stride = c.lanes;
  if (tile.isPrefetched) // one prefetch for each cache line of each row
    stride = std::max(stride, lineNumbers());
  int64_t whole = c.in() / stride * stride;
  if (whole > 0) {
    sums = carried(index(0), index(whole), stride, sums, [&](ValueRange before, Value k) {
      if (tile.isPrefetched)
        for (Value row : tile.rows)
          prefetch(tile.matrix, {row, add(k, index(Contraction::aheadBytes / c.elementBytes()))});
      Values next(before);
      for (int64_t i = 0; i < stride; i += c.lanes)
        next = step(next, tile, i ? add(k, index(i)) : k, {});
      return next;
    });
  }
  for (; whole + c.lanes <= c.in(); whole += c.lanes)
    sums = step(sums, tile, index(whole), {});
  if (whole < c.in())
    sums = step(sums, tile, index(whole), firstLanes(c.lanes, c.in() - whole));
  return sums;
}

void RowEmitter::compute(const Tile &tile) {
  SmallVector<Value> sums = tile.matrix ? sumsOf(tile) : sumsOfBlocks(tile);
  for (int64_t j = 0; j < tile.count; ++j) {
    SmallVector<Value> ofVector;
    for (size_t i = 0; i < tile.rows.size(); ++i)
      ofVector.push_back(sums[i * tile.count + j]);
    Value total = totals(b, loc, ofVector);
    for (auto [i, row] : llvm::enumerate(tile.outputRows))
      memref::StoreOp::create(
          b, loc, vector::ExtractOp::create(b, loc, total, ArrayRef<int64_t>{int64_t(i)}), y,
          ValueRange{add(tile.vector, index(j)), row});
  }
}

} // namespace

int64_t ctxc::panelRows(const Contraction &c) {
  int64_t fitting = std::min(panelSize / c.in(), maxPanelRows);
  return fitting / tileRows * tileRows;
}

int64_t ctxc::scratchRows(const Contraction &c) {
  if (c.integer) // of scales that lie apart
    return BlockReader::hasScalesApart(cast<xf::QuantizedType>(c.stored.getElementType()))
               ? anyStreams
               : 0;
  int64_t streams = c.stored ? std::max(anyStreams, c.readingOfBlocks().streams) : 0;
  return std::max(streams, c.rounded ? 0 : panelRows(c));
}

void ctxc::emitRowsFew(OpBuilder &b, Location loc, const Contraction &c,
                       const RowOperands &operands, Value begin, Value end) {
  RowEmitter(b, loc, c, operands).fewVectors(begin, end);
}

void ctxc::emitRowsMany(OpBuilder &b, Location loc, const Contraction &c,
                        const RowOperands &operands, Value begin, Value end) {
  RowEmitter(b, loc, c, operands).blocked(begin, end);
}
