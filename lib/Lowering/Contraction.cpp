#include "lib/Lowering/Contraction.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/RoundedContraction.h"
#include "lib/Lowering/VectorSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Rows of a tile.
constexpr int64_t tileRows = 4;
/// Vectors of a tile, where sums, a vector of each x and one of W fill the registers.
int64_t tileVectors(const Contraction &c) { return c.registers >= 32 ? 6 : 3; }
/// From so many vectors on a panel of rows is worth its keep.
constexpr int64_t manyVectors = 16;
/// Numbers of a panel: 256 KB of float32.
constexpr int64_t panelSize = 1 << 16;
constexpr int64_t maxPanelRows = 64;

/// How a range of rows is read once, for few vectors (Contraction.h).
struct Reading {
  int64_t streams; ///< each a tile's row
  bool isAhead;    ///< whether W's lines are asked for ahead
};
constexpr Reading shortRows = {2, false};
/// From so many bytes on all x do not stay in the first-level cache beside W: that of a thread
/// which reads all of W, and that of one among several, of which two may be in one core.
constexpr int64_t longAlone = 9 << 10, longShared = 8 << 10;
constexpr int64_t aheadBytes = 4 << 10, lineBytes = 64;

int64_t elementBytes(const Contraction &c) { return c.weight.getElementTypeBitWidth() / 8; }

Reading readingFor(const Contraction &c, int64_t vectors, int64_t longBytes) {
  if (c.stored || vectors * c.in() * int64_t(sizeof(float)) < longBytes)
    return shortRows;
  return {std::min({int64_t(8), c.lanes, c.registers / 2 / vectors}), true};
}

class Emitter {
public:
  Emitter(const Contraction &c, ModuleOp module, Location loc)
      : c(c), module(module), b(module.getContext()), loc(loc),
        accumulator(VectorType::get({c.lanes}, b.getF32Type())) {}

  func::FuncOp emit(StringRef name);

private:
  int64_t lineNumbers() const { return lineBytes / elementBytes(c); }
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value times(Value x, int64_t y) { return arith::MulIOp::create(b, loc, x, index(y)); }
  Value least(Value x, Value y) { return arith::MinUIOp::create(b, loc, x, y); }
  Value over(Value x, int64_t y) { return arith::DivUIOp::create(b, loc, x, index(y)); }
  using Body = llvm::function_ref<void(Value)>;
  void forRange(Value from, Value to, int64_t step, Body body);

  // Memory of the thread for rows in float32.
  int64_t scratchRows() const;
  int64_t panelRows() const;
  void decode(Value row, Value count, Value intoRow);
  void copyRow(Value row, Value intoRow);

  // Ranges of rows.
  using RowsBody = llvm::function_ref<void(ArrayRef<Value>)>;
  void fewVectors(Value begin, Value end);
  void anyVectors(ArrayRef<Value> rowsOfW);
  void streamed(Value begin, Value end, int64_t streams, RowsBody body);
  void blocked(Value begin, Value end);
  /// The panel that is asked for while one is multiplied.
  struct Ahead {
    Value from;  ///< its first row
    Value count; ///< its numbers
    Value share; ///< those that each tile asks for
  };
  Ahead shareOut(Value from, Value end, int64_t vectors);
  void panel(Value from, Value to, int64_t vectors, Value s, const Ahead &ahead);
  void askFor(const Ahead &ahead, Value tile);

  // Tiles.
  struct Tile {
    Value matrix;                  ///< W, or rows of it in float32
    SmallVector<Value> rows;       ///< of the matrix
    SmallVector<Value> outputRows; ///< columns of y
    Value vector;                  ///< the first row of x and y
    int64_t count;                 ///< of vectors
    bool isAhead = false;          ///< lines of the matrix are asked for ahead
  };
  Value load(Value memref, Value row, Value column, Value mask);
  Value extended(Value vector);
  SmallVector<Value> step(ValueRange sums, const Tile &tile, Value k, Value mask);
  void ask(Value memref, Value row, Value column);
  void compute(const Tile &tile);

  const Contraction &c;
  ModuleOp module;
  OpBuilder b;
  Location loc;
  VectorType accumulator;
  Value w, x, y, rows;
  Value address, scratchAddress, scratch;
};

void Emitter::forRange(Value from, Value to, int64_t step, Body body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

func::FuncOp Emitter::emit(StringRef name) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
  function.setPrivate();
  // Rows are copied here, not in a call of memcpy.
  function->setAttr("passthrough", b.getStrArrayAttr({"no-builtins"}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto field = [&](int32_t i, Type type) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, c.frameType(b.getContext()), entry->getArgument(0),
                                   ArrayRef<LLVM::GEPArg>{0, i});
    return LLVM::LoadOp::create(b, loc, type, at);
  };
  auto rowsOf = [&](int64_t width) {
    return MemRefType::get({ShapedType::kDynamic, width}, b.getF32Type());
  };
  rows = toIndex(b, loc, field(3, i64));
  address = field(0, ptr);
  if (!c.stored)
    w = memrefAt(b, loc, address, c.weight, {});
  x = memrefAt(b, loc, field(1, ptr), rowsOf(c.in()), rows);
  y = memrefAt(b, loc, field(2, ptr), rowsOf(c.out()), rows);
  if (int64_t count = scratchRows()) {
    Value size = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(count * c.in()));
    scratchAddress = LLVM::AllocaOp::create(b, loc, ptr, b.getF32Type(), size, /*alignment=*/64);
    scratch =
        memrefAt(b, loc, scratchAddress, MemRefType::get({count, c.in()}, b.getF32Type()), {});
  }

  Value begin = toIndex(b, loc, entry->getArgument(1)),
        end = toIndex(b, loc, entry->getArgument(2));
  if (panelRows() == 0 && !c.rounded) {
    fewVectors(begin, end);
  } else {
    Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rows, index(manyVectors));
    auto branch = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (c.rounded)
      emitRounded(b, loc, {w, field(4, ptr), y, rows}, begin, end, c.lanes);
    else
      blocked(begin, end);
    b.setInsertionPointToStart(branch.elseBlock());
    fewVectors(begin, end);
  }
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b, loc);
  return function;
}

//===----------------------------------------------------------------------===//
// Rows in float32
//===----------------------------------------------------------------------===//

/// 0: rows are too long for a panel of them.
int64_t Emitter::panelRows() const {
  int64_t fitting = std::min(panelSize / c.in(), maxPanelRows);
  return fitting / tileRows * tileRows;
}

int64_t Emitter::scratchRows() const {
  int64_t streams = c.stored ? shortRows.streams : 0;
  return std::max(streams, c.rounded ? 0 : panelRows());
}

/// `count` rows of a quantised W from `row` on.
void Emitter::decode(Value row, Value count, Value intoRow) {
  auto element = cast<xf::QuantizedType>(c.stored.getElementType());
  StringRef name = "ctxc_decode";
  Value into = LLVM::GEPOp::create(b, loc, address.getType(), b.getF32Type(), scratchAddress,
                                   ArrayRef<LLVM::GEPArg>{toI64(b, loc, times(intoRow, c.in()))});
  SmallVector<Value> operands{
      arith::ConstantIntOp::create(b, loc, int64_t(element.getFormat()), 32), address,
      toI64(b, loc, times(row, c.in())), toI64(b, loc, times(count, c.in())), into};
  if (!module.lookupSymbol(name)) {
    OpBuilder declare(module.getBodyRegion());
    func::FuncOp::create(declare, loc, name, b.getFunctionType(TypeRange(ValueRange(operands)), {}))
        .setPrivate();
  }
  func::CallOp::create(b, loc, name, TypeRange(), operands);
}

void Emitter::copyRow(Value row, Value intoRow) {
  int64_t whole = c.in() / c.lanes * c.lanes;
  if (whole > 0)
    forRange(index(0), index(whole), c.lanes, [&](Value k) {
      vector::StoreOp::create(b, loc, extended(load(w, row, k, {})), scratch,
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

void Emitter::fewVectors(Value begin, Value end) {
  auto any = [&](ArrayRef<Value> at) { anyVectors(at); };
  if (!readingFor(c, 2, longShared).isAhead)
    return streamed(begin, end, shortRows.streams, any);
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
        compute({w, rowsOfW, rowsOfW, index(0), count, reading.isAhead});
      });
    };
    b.createBlock(&branch.getCaseRegions()[i]);
    if (alone.isAhead == shared.isAhead) {
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
  streamed(begin, end, shortRows.streams, any);
  scf::YieldOp::create(b, loc);
}

/// These rows with every vector.
void Emitter::anyVectors(ArrayRef<Value> at) {
  SmallVector<Value> outputRows(at), from(at);
  if (c.stored)
    for (auto [i, row] : llvm::enumerate(at)) {
      from[i] = index(i);
      decode(row, index(1), from[i]);
    }
  auto tiles = [&](Value begin, Value end, int64_t count) {
    forRange(begin, end, count,
             [&](Value s) { compute({c.stored ? scratch : w, from, outputRows, s, count}); });
  };
  Value pairs = times(over(rows, 2), 2);
  tiles(index(0), pairs, 2);
  tiles(pairs, rows, 1);
}

/// A row of each stream at a time, and then what the streams leave over.
void Emitter::streamed(Value begin, Value end, int64_t streams, RowsBody body) {
  Value length = over(sub(end, begin), streams);
  forRange(index(0), length, 1, [&](Value i) {
    SmallVector<Value> at{add(begin, i)};
    while (int64_t(at.size()) < streams)
      at.push_back(add(at.back(), length));
    body(at);
  });
  forRange(add(begin, times(length, streams)), end, 1, [&](Value row) { body(row); });
}

void Emitter::blocked(Value begin, Value end) {
  int64_t vectors = tileVectors(c);
  forRange(begin, end, panelRows(), [&](Value from) {
    Value to = least(add(from, index(panelRows())), end);
    if (c.stored)
      decode(from, sub(to, from), index(0));
    else
      forRange(from, to, 1, [&](Value row) { copyRow(row, sub(row, from)); });
    // The last vectors are a whole tile too: some of them once more, with the same sums.
    Value last = sub(rows, index(vectors));
    Ahead next = shareOut(to, end, vectors);
    forRange(index(0), rows, vectors,
             [&](Value s) { panel(from, to, vectors, least(s, last), next); });
  });
}

/// The panel from `from` on, a share to each tile of the one before.
Emitter::Ahead Emitter::shareOut(Value from, Value end, int64_t vectors) {
  Value count = times(least(sub(end, from), index(panelRows())), c.in());
  Value tiles = times(over(add(rows, index(vectors - 1)), vectors), panelRows() / tileRows);
  Value lines = arith::CeilDivUIOp::create(b, loc, over(count, lineNumbers()), tiles);
  return {from, count, times(lines, lineNumbers())};
}

/// Rows `from` to `to` with `vectors` vectors from `s` on.
void Emitter::panel(Value from, Value to, int64_t vectors, Value s, const Ahead &ahead) {
  Value before = times(over(add(s, index(vectors - 1)), vectors), panelRows() / tileRows);
  auto tiles = [&](Value begin, Value end, int64_t count) {
    forRange(begin, end, count, [&](Value row) {
      if (!c.stored && count == tileRows)
        askFor(ahead, add(before, over(sub(row, from), tileRows)));
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

/// The share of one tile.
void Emitter::askFor(const Ahead &ahead, Value tile) {
  Value first = arith::MulIOp::create(b, loc, tile, ahead.share);
  forRange(first, least(add(first, ahead.share), ahead.count), lineNumbers(),
           [&](Value k) { ask(w, ahead.from, k); });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value Emitter::load(Value memref, Value row, Value column, Value mask) {
  auto element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({c.lanes}, element);
  if (!mask)
    return vector::LoadOp::create(b, loc, type, memref, ValueRange{row, column});
  Value zero = arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memref, ValueRange{row, column}, mask, zero);
}

Value Emitter::extended(Value vector) {
  bool isFloat = cast<VectorType>(vector.getType()).getElementType().isF32();
  return isFloat ? vector : Value(arith::ExtFOp::create(b, loc, accumulator, vector));
}

/// One step along the rows: sums += W[·, k…] x[·, k…]; a row's sums lie side by side.
SmallVector<Value> Emitter::step(ValueRange sums, const Tile &tile, Value k, Value mask) {
  SmallVector<Value> xs, next;
  for (int64_t j = 0; j < tile.count; ++j)
    xs.push_back(load(x, add(tile.vector, index(j)), k, mask));
  for (Value row : tile.rows) {
    Value wide = extended(load(tile.matrix, row, k, mask));
    for (Value xv : xs)
      next.push_back(vector::FMAOp::create(b, loc, wide, xv, sums[next.size()]));
  }
  return next;
}

/// Into the second-level cache: to the first it would come too early.
void Emitter::ask(Value memref, Value row, Value column) {
  memref::PrefetchOp::create(b, loc, memref, ValueRange{row, column}, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

void Emitter::compute(const Tile &tile) {
  Value zero = arith::ConstantOp::create(b, loc, accumulator, b.getZeroAttr(accumulator));
  SmallVector<Value> sums(tile.rows.size() * tile.count, zero);
  int64_t stride = c.lanes;
  if (tile.isAhead) // a line of each row is asked for once
    stride = std::max(stride, lineNumbers());
  int64_t whole = c.in() / stride * stride;
  if (whole > 0) {
    auto loop = scf::ForOp::create(b, loc, index(0), index(whole), index(stride), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    if (tile.isAhead)
      for (Value row : tile.rows)
        ask(tile.matrix, row, add(k, index(aheadBytes / elementBytes(c))));
    sums.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    for (int64_t i = 0; i < stride; i += c.lanes)
      sums = step(sums, tile, i ? add(k, index(i)) : k, {});
    scf::YieldOp::create(b, loc, sums);
    sums.assign(loop.result_begin(), loop.result_end());
  }
  for (; whole + c.lanes <= c.in(); whole += c.lanes)
    sums = step(sums, tile, index(whole), {});
  if (whole < c.in()) {
    Value mask = vector::ConstantMaskOp::create(b, loc, VectorType::get({c.lanes}, b.getI1Type()),
                                                ArrayRef<int64_t>{c.in() - whole});
    sums = step(sums, tile, index(whole), mask);
  }
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

LLVM::LLVMStructType Contraction::frameType(MLIRContext *context) const {
  Type ptr = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> fields{ptr, ptr, ptr, IntegerType::get(context, 64)};
  if (rounded)
    fields.push_back(ptr);
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

func::FuncOp Contraction::emit(ModuleOp module, StringRef name, Location loc) const {
  return Emitter(*this, module, loc).emit(name);
}
