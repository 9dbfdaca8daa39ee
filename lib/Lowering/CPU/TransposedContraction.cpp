#include "lib/Lowering/CPU/TransposedContraction.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Vector registers of columns in a tile.
constexpr int64_t tileWidth = 4;
/// Elements of a panel: 256 KB of float32.
constexpr int64_t panelSize = 1 << 16;
/// There are at least this many blocks, so that threads can divide them, and none is longer than
/// `longestBlock`.
constexpr int64_t leastBlocks = 8, longestBlock = 512;
constexpr int64_t lineBytes = 64;

/// How a block is read when there are few vectors: one row of each of its access streams at a time.
struct Reading {
  int64_t streams;
  bool isPrefetched; ///< whether lines are prefetched into the second-level cache
};
/// The sums of longer rows do not stay in the first-level cache beside W. With more streams each
/// sum is loaded and stored less often. Shorter rows are prefetched where rows of an (out, in)
/// matrix are.
constexpr int64_t longRow = 1024, aheadBytes = 4 << 10;
Reading readingOf(const Contraction &c) {
  const bool isFloat = c.weight.getElementType().isF32();
  const bool asksAhead = (isFloat ? c.readings.f32 : c.readings.half).asksAhead;
  return c.out() > longRow ? Reading{8, true} : Reading{4, asksAhead};
}

int64_t blockRows(const Contraction &c) {
  int64_t blocks = std::max<int64_t>(leastBlocks, llvm::divideCeil(c.in(), longestBlock));
  return llvm::alignTo(llvm::divideCeil(c.in(), blocks), readingOf(c).streams);
}

class TransposedEmitter : LoopBuilder {
public:
  TransposedEmitter(OpBuilder &b, Location loc, const Contraction &c,
                    const TransposedOperands &given)
      : LoopBuilder(b, loc), c(c), given(given), sums(VectorType::get({c.lanes}, b.getF32Type())),
        stored(VectorType::get({c.lanes}, c.weight.getElementType())) {}

  void few(Value begin, Value end);
  void many(Value begin, Value end);
  void totals();

private:
  int64_t tileColumns() const { return transposedUnit(c); }
  int64_t panelColumns() const {
    return std::max(tileColumns(), panelSize / blockRows(c) / tileColumns() * tileColumns());
  }
  int64_t lineNumbers() const { return lineBytes / c.elementBytes(); }
  Value weights(Value row, Value column, Value mask);
  Value broadcast(Value number) { return vector::BroadcastOp::create(b, loc, sums, number); }
  Value multiplied(Value w, Value x, Value sum) { return vector::FMAOp::create(b, loc, w, x, sum); }

  // Few vectors
  void inOrder(Value first, Value count, llvm::function_ref<void(ArrayRef<Value>, Value)> body);
  /// Calls body(column, mask) for every vector of columns, and ofLine(column) where a cache line
  /// starts.
  void forColumns(llvm::function_ref<void(Value, Value)> body,
                  llvm::function_ref<void(Value)> ofLine = {});
  void addRows(ArrayRef<Value> rows, Value sumsFrom);
  void sweep(ArrayRef<Value> rows, Value sumsFrom, Value vector, int64_t vectors);

  // Many vectors
  struct Panel {
    Value from, to, k, count;                    ///< columns; first row, number of rows
    Value nextColumn, nextRow, nextCount, share; ///< the next panel; rows a tile prefetches
  };
  /// Calls body(first column, columns) for every tile of a panel.
  void forTiles(const Panel &panel, llvm::function_ref<void(Value, int64_t)> body);
  void shareOut(Panel &panel, Value end, int64_t vectors);
  void copy(const Panel &panel);
  void tile(const Panel &panel, Value column, int64_t columns, Value vector, int64_t vectors);
  Value maskOf(int64_t columns, int64_t i);
  void prefetchShare(const Panel &panel, Value column, Value vector, int64_t vectors);

  const Contraction &c;
  TransposedOperands given;
  VectorType sums, stored;
  Value panelMemory; ///< tile × row × column in the tile
};

/// Loads a vector of W and widens it to float32.
Value TransposedEmitter::weights(Value row, Value column, Value mask) {
  Value w = load(stored, given.w, {row, column}, mask);
  return stored == sums ? w : Value(arith::ExtFOp::create(b, loc, sums, w));
}

//===----------------------------------------------------------------------===//
// Few vectors
//===----------------------------------------------------------------------===//

void TransposedEmitter::few(Value begin, Value end) {
  auto type = MemRefType::get({ShapedType::kDynamic, c.out()}, b.getF32Type());
  given.y = memrefAt(b, loc, given.y, type, times(given.rows, transposedBlocks(c)));
  forRange(begin, end, 1, [&](Value block) {
    Value sumsFrom = arith::MulIOp::create(b, loc, block, given.rows);
    forRange(sumsFrom, add(sumsFrom, given.rows), 1, [&](Value s) {
      forColumns([&](Value column, Value mask) { store(zeros(sums), given.y, {s, column}, mask); });
    });
    Value first = times(block, blockRows(c));
    inOrder(first, least(index(blockRows(c)), sub(index(c.in()), first)),
            [&](ArrayRef<Value> rows, Value) { addRows(rows, sumsFrom); });
  });
}

/// Calls body(rows, position of the first of them in this order) for the rows of a block: one row
/// of each stream at a time, then one by one the rows that do not divide by the number of streams.
void TransposedEmitter::inOrder(Value first, Value count,
                                llvm::function_ref<void(ArrayRef<Value>, Value)> body) {
  int64_t streams = readingOf(c).streams;
  Value length = over(count, streams);
  forRange(index(0), length, 1, [&](Value i) {
    Values rows{add(first, i)};
    while (int64_t(rows.size()) < streams)
      rows.push_back(add(rows.back(), length));
    body(rows, times(i, streams));
  });
  forRange(times(length, streams), count, 1, [&](Value i) { body(add(first, i), i); });
}

/// Adds up the blocks in order, for all columns.
void TransposedEmitter::totals() {
  auto type = MemRefType::get({ShapedType::kDynamic, c.out()}, b.getF32Type());
  Value partial = memrefAt(b, loc, given.x, type, times(given.rows, transposedBlocks(c)));
  forRange(index(0), given.rows, 1, [&](Value s) {
    forColumns([&](Value column, Value mask) {
      Value total = load(sums, partial, {s, column}, mask);
      Value row = s;
      for (int64_t i = 1; i < transposedBlocks(c); ++i) {
        row = add(row, given.rows);
        total = arith::AddFOp::create(b, loc, total, load(sums, partial, {row, column}, mask));
      }
      store(total, given.y, {s, column}, mask);
    });
  });
}

void TransposedEmitter::forColumns(llvm::function_ref<void(Value, Value)> body,
                                   llvm::function_ref<void(Value)> ofLine) {
  int64_t step = ofLine ? std::max(c.lanes, lineNumbers()) : c.lanes;
  int64_t whole = c.out() / step * step;
  forRange(index(0), index(whole), step, [&](Value column) {
    if (ofLine)
      ofLine(column);
    for (int64_t i = 0; i < step; i += c.lanes)
      body(i ? add(column, index(i)) : column, {});
  });
  for (; whole < c.out(); whole += c.lanes)
    body(index(whole), whole + c.lanes > c.out() ? firstLanes(c.lanes, c.out() - whole) : Value());
}

/// Adds the products of these rows to the sums of their block, for all vectors.
void TransposedEmitter::addRows(ArrayRef<Value> rows, Value sumsFrom) {
  Value pairs = multiples(given.rows, 2);
  forRange(index(0), pairs, 2, [&](Value s) { sweep(rows, sumsFrom, s, 2); });
  forRange(pairs, given.rows, 1, [&](Value s) { sweep(rows, sumsFrom, s, 1); });
}

void TransposedEmitter::sweep(ArrayRef<Value> rows, Value sumsFrom, Value vector, int64_t vectors) {
  Values places, numbers;
  for (int64_t v = 0; v < vectors; ++v)
    places.push_back(add(sumsFrom, add(vector, index(v))));
  for (Value row : rows)
    for (int64_t v = 0; v < vectors; ++v)
      numbers.push_back(broadcast(
          memref::LoadOp::create(b, loc, given.x, ValueRange{add(vector, index(v)), row})));
  auto addProducts = [&](Value column, Value mask) {
    Values totals;
    for (Value place : places)
      totals.push_back(load(sums, given.y, {place, column}, mask));
    for (auto [i, row] : llvm::enumerate(rows)) {
      Value w = weights(row, column, mask);
      for (int64_t v = 0; v < vectors; ++v)
        totals[v] = multiplied(w, numbers[i * vectors + v], totals[v]);
    }
    for (int64_t v = 0; v < vectors; ++v)
      store(totals[v], given.y, {places[v], column}, mask);
  };
  if (!readingOf(c).isPrefetched)
    return forColumns(addProducts);
  forColumns(addProducts, [&](Value column) {
    for (Value row : rows)
      prefetch(given.w, {row, add(column, index(aheadBytes / c.elementBytes()))});
  });
}

//===----------------------------------------------------------------------===//
// Many vectors
//===----------------------------------------------------------------------===//

/// The numbers of vectors that tiles take: first the largest number for which the sums, one element
/// of each vector and one register of W fill the register file; smaller tiles take the vectors that
/// remain.
SmallVector<int64_t> vectorsOfTiles(const Contraction &c) {
  return c.registers >= 32 ? SmallVector<int64_t>{6, 2, 1} : SmallVector<int64_t>{3, 1};
}

void TransposedEmitter::many(Value begin, Value end) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto type = MemRefType::get({panelColumns() / tileColumns(), blockRows(c), tileColumns()},
                              b.getF32Type());
  Value size =
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(type.getNumElements()));
  Value address = LLVM::AllocaOp::create(b, loc, ptr, b.getF32Type(), size, /*alignment=*/64);
  panelMemory = memrefAt(b, loc, address, type, {});

  forRange(begin, end, panelColumns(), [&](Value from) {
    Value to = least(add(from, index(panelColumns())), end);
    forRange(index(0), index(c.in()), blockRows(c), [&](Value k) {
      Panel panel{from, to, k, least(index(blockRows(c)), sub(index(c.in()), k)), {}, {}, {}, {}};
      shareOut(panel, end, vectorsOfTiles(c).front());
      copy(panel);
      Value done = index(0);
      for (int64_t vectors : vectorsOfTiles(c)) {
        Value last = add(done, multiples(sub(given.rows, done), vectors));
        forRange(done, last, vectors, [&](Value vector) {
          forTiles(panel, [&](Value column, int64_t columns) {
            tile(panel, column, columns, vector, vectors);
          });
        });
        done = last;
      }
    });
  });
}

void TransposedEmitter::forTiles(const Panel &panel,
                                 llvm::function_ref<void(Value, int64_t)> body) {
  Value whole = add(panel.from, multiples(sub(panel.to, panel.from), tileColumns()));
  forRange(panel.from, whole, tileColumns(), [&](Value column) { body(column, tileColumns()); });
  if (int64_t left = c.out() % tileColumns())
    ifThen(isLess(whole, panel.to), [&] { body(whole, left); });
}

/// The mask of register i of a tile's columns; null where all lanes are used.
Value TransposedEmitter::maskOf(int64_t columns, int64_t i) {
  int64_t left = columns - i * c.lanes;
  return left < c.lanes ? firstLanes(c.lanes, left) : Value();
}

/// Divides the next panel into equal parts, which the tiles of the largest size prefetch.
void TransposedEmitter::shareOut(Panel &panel, Value end, int64_t vectors) {
  Value below = add(panel.k, index(blockRows(c)));
  Value isBelow = isLess(below, index(c.in()));
  auto either = [&](Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, isBelow, x, y);
  };
  panel.nextRow = either(below, index(0));
  panel.nextColumn = either(panel.from, panel.to);
  Value rows = least(index(blockRows(c)), sub(index(c.in()), panel.nextRow));
  panel.nextCount = arith::SelectOp::create(b, loc, isLess(panel.nextColumn, end), rows, index(0));
  Value tiles =
      times(over(add(given.rows, index(vectors - 1)), vectors), panelColumns() / tileColumns());
  panel.share = arith::CeilDivUIOp::create(b, loc, panel.nextCount, tiles);
}

void TransposedEmitter::prefetchShare(const Panel &panel, Value column, Value vector,
                                      int64_t vectors) {
  Value tile = add(times(over(vector, vectors), panelColumns() / tileColumns()),
                   over(sub(column, panel.from), tileColumns()));
  Value first = arith::MulIOp::create(b, loc, tile, panel.share);
  forRange(first, least(add(first, panel.share), panel.nextCount), 1, [&](Value row) {
    forRange(index(0), index(panelColumns()), lineNumbers(), [&](Value i) {
      prefetch(given.w, {add(panel.nextRow, row), add(panel.nextColumn, i)});
    });
  });
}

/// Copies the rows of the panel in their order.
void TransposedEmitter::copy(const Panel &panel) {
  inOrder(panel.k, panel.count, [&](ArrayRef<Value> rows, Value number) {
    for (auto [i, row] : llvm::enumerate(rows))
      forTiles(panel, [&, i = i, row = row](Value column, int64_t columns) {
        Value tile = over(sub(column, panel.from), tileColumns());
        for (int64_t j = 0; j * c.lanes < columns; ++j)
          store(weights(row, add(column, index(j * c.lanes)), maskOf(columns, j)), panelMemory,
                {tile, add(number, index(i)), index(j * c.lanes)}, {});
      });
  });
}

/// y[vector…, column…] += their products along the panel.
void TransposedEmitter::tile(const Panel &panel, Value column, int64_t columns, Value vector,
                             int64_t vectors) {
  if (vectors == vectorsOfTiles(c).front() && columns == tileColumns())
    prefetchShare(panel, column, vector, vectors);
  int64_t width = llvm::divideCeil(columns, c.lanes);
  Values places, masks;
  for (int64_t i = 0; i < width; ++i) {
    places.push_back(add(column, index(i * c.lanes)));
    masks.push_back(maskOf(columns, i));
  }
  // Addresses the elements of all vectors of the tile from one base address, with constant
  // distances.
  Value begin = toI64(b, loc, add(times(vector, c.in()), panel.k));
  Value address = LLVM::GEPOp::create(b, loc, given.xAddress.getType(), b.getF32Type(),
                                      given.xAddress, ArrayRef<LLVM::GEPArg>{begin});
  Value x = memrefAt(b, loc, address, MemRefType::get({vectors, c.in()}, b.getF32Type()), {});
  Value group = over(sub(column, panel.from), tileColumns());
  auto step = [&](ValueRange soFar, Value k, Value number) {
    Values ws, next;
    for (int64_t i = 0; i < width; ++i)
      ws.push_back(load(sums, panelMemory, {group, number, index(i * c.lanes)}, {}));
    for (int64_t v = 0; v < vectors; ++v) {
      Value wide = broadcast(memref::LoadOp::create(b, loc, x, ValueRange{index(v), k}));
      for (Value w : ws)
        next.push_back(multiplied(w, wide, soFar[next.size()]));
    }
    return next;
  };
  // The distance from a row of one stream to that of the next stream, and from the last stream's
  // row to the first stream's next row.
  int64_t streams = readingOf(c).streams;
  Value length = over(panel.count, streams), ofStreams = times(length, streams);
  Values start(vectors * width, zeros(sums));
  start.push_back(index(0));
  Values products = carried(index(0), ofStreams, 1, start, [&](ValueRange soFar, Value number) {
    Values next = step(soFar.drop_back(), soFar.back(), number);
    Value k = add(soFar.back(), length);
    Value first = sub(k, sub(ofStreams, index(1)));
    next.push_back(arith::SelectOp::create(b, loc, isLess(k, ofStreams), k, first));
    return next;
  });
  products.pop_back();
  products = carried(ofStreams, panel.count, 1, products,
                     [&](ValueRange soFar, Value i) { return step(soFar, i, i); });
  auto toResults = [&](bool isFirst) {
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t i = 0; i < width; ++i) {
        Values at{add(vector, index(v)), places[i]};
        Value total = products[v * width + i];
        if (!isFirst)
          total = arith::AddFOp::create(b, loc, load(sums, given.y, at, masks[i]), total);
        store(total, given.y, at, masks[i]);
      }
  };
  auto branch = scf::IfOp::create(b, loc, isLess(panel.k, index(1)), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  toResults(/*isFirst=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  toResults(/*isFirst=*/false);
}

} // namespace

int64_t ctxc::transposedUnit(const Contraction &c) { return tileWidth * c.lanes; }

int64_t ctxc::transposedBlocks(const Contraction &c) {
  return llvm::divideCeil(c.in(), blockRows(c));
}

func::FuncOp ctxc::emitTransposedTotals(const Contraction &c, ModuleOp module, StringRef name,
                                        Location loc) {
  OpBuilder b(module.getContext());
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr}, {}));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  auto field = [&](int32_t i, Type type) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, c.frameType(b.getContext()),
                                   function.getArgument(0), ArrayRef<LLVM::GEPArg>{0, i});
    return LLVM::LoadOp::create(b, loc, type, at);
  };
  Value rows = toIndex(b, loc, field(3, b.getI64Type()));
  auto type = MemRefType::get({ShapedType::kDynamic, c.out()}, b.getF32Type());
  Value y = memrefAt(b, loc, field(2, ptr), type, rows);
  TransposedEmitter(b, loc, c, {{}, field(4, ptr), y, {}, rows}).totals();
  func::ReturnOp::create(b, loc);
  return function;
}

void ctxc::emitTransposedFew(OpBuilder &b, Location loc, const Contraction &c,
                             const TransposedOperands &operands, Value begin, Value end) {
  TransposedEmitter(b, loc, c, operands).few(begin, end);
}

void ctxc::emitTransposedMany(OpBuilder &b, Location loc, const Contraction &c,
                              const TransposedOperands &operands, Value begin, Value end) {
  TransposedEmitter(b, loc, c, operands).many(begin, end);
}
