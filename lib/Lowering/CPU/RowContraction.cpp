#include "lib/Lowering/CPU/RowContraction.h"
#include "lib/Lowering/CPU/IntegerContraction.h"
#include "lib/Lowering/CPU/RoundedContraction.h"
#include "lib/Lowering/CPU/RowTiles.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/StoredLayout.h"
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
/// Numbers of a row that are multiplied with a tile's vectors before those of the next row are.
/// Both stay in the first-level cache.
constexpr int64_t partSize = 704;

/// The most bytes of vectors that all panels are multiplied with before the next ones are. They
/// stay in the second-level cache beside a panel.
constexpr int64_t blockBytes = 3 << 19;

/// Rows of W that are read side by side where the number of vectors is not known, or products are
/// of integers.
constexpr int64_t anyStreams = 2;

/// Whether several numbers of W share a byte.
bool unpacks(const Contraction &c) {
  if (!c.stored)
    return false;
  auto format = cast<xf::QuantizedType>(c.stored.getElementType());
  return format.getBlockBytes() < format.getBlockElements();
}

/// Whether a number of a block of 256 lies in two places of it. Putting it together takes
/// registers, which leaves room for the sums of few rows.
bool isPutTogether(const Contraction &c) {
  if (!c.stored)
    return false;
  const blocks::Layout &layout = layoutOf(cast<xf::QuantizedType>(c.stored.getElementType()));
  return layout.elements == 256 && layout.top.bits;
}

/// How a range of rows is read in a single pass when there are few vectors. A tile takes one row of
/// each stream; half of the registers hold its sums, and a quarter of them where the others take
/// numbers out of bytes.
Reading readingFor(const Contraction &c, int64_t vectors) {
  const bool isShort = vectors * c.in() * int64_t(sizeof(float)) < c.readings.longFrom;
  const bool isFloat = c.weight.getElementType().isF32();
  Reading reading = c.stored  ? c.readingOfBlocks()
                    : isFloat ? (isShort ? c.readings.f32 : c.readings.longF32)
                              : (isShort ? c.readings.half : c.readings.longHalf);
  const int64_t ofSums = c.registers / (unpacks(c) ? 4 : 2);
  reading.streams = std::min({reading.streams, c.lanes, ofSums / vectors});
  if (isPutTogether(c))
    reading.streams = std::min<int64_t>(reading.streams, c.registers / 8);
  return reading;
}

class RowEmitter : RowTiles {
public:
  RowEmitter(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &given)
      : RowTiles(b, loc, c, given) {}

  void fewVectors(Value begin, Value end);
  void blocked(Value begin, Value end);

private:
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
  NextPanel shareOut(Value from, Value end, Value tiles);
  void panel(Value from, Value to, int64_t vectors, Value s, Value before, const NextPanel &next);
  int64_t partLength() const {
    return llvm::alignTo(llvm::divideCeil(c.in(), llvm::divideCeil(c.in(), partSize)), c.lanes);
  }
  void prefetchShare(const NextPanel &next, Value tile);
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
  auto isOfAny = [&](int64_t count) { return readingFor(c, count) == Reading{anyStreams, false}; };
  if (c.stored ? !readsBlocks() : isOfAny(1) && isOfAny(2))
    return streamed(begin, end, anyStreams, any);
  const int64_t counts[] = {1, 2};
  auto branch = scf::IndexSwitchOp::create(b, loc, TypeRange(), rows, counts, std::size(counts));
  OpBuilder::InsertionGuard guard(b);
  for (auto [i, count] : llvm::enumerate(counts)) {
    const Reading reading = readingFor(c, count);
    b.createBlock(&branch.getCaseRegions()[i]);
    streamed(begin, end, reading.streams, [&, count = count](ArrayRef<Value> at) {
      SmallVector<Value> rowsOfW(at);
      if (c.stored)
        return fewOfBlocks(at, count, reading.asksAhead);
      compute({w, rowsOfW, rowsOfW, index(0), count, reading.asksAhead});
    });
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
  inPairs(rows, [&](Value s, int64_t count) {
    compute({c.stored ? scratch : w, from, outputRows, s, count});
  });
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
  if (partLength() < c.in()) {
    auto type = MemRefType::get({panelRows(c) * vectors, c.lanes}, b.getF32Type());
    Value memory =
        LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getF32Type(),
                               LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                                        b.getI64IntegerAttr(type.getNumElements())),
                               /*alignment=*/64);
    parts = memrefAt(b, loc, memory, type, {});
  }
  auto ceil = [&](Value x, Value y) -> Value { return arith::CeilDivUIOp::create(b, loc, x, y); };
  const int64_t most = std::max<int64_t>(blockBytes / (c.in() * sizeof(float)), vectors);
  Value size = ceil(ceil(rows, ceil(rows, index(most))), index(vectors));
  auto blocks = scf::ForOp::create(b, loc, index(0), rows, times(size, vectors));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  Value first = blocks.getInductionVar(), count = least(sub(rows, first), times(size, vectors));
  forRange(begin, end, panelRows(c), [&](Value from) {
    Value to = least(add(from, index(panelRows(c))), end);
    if (c.stored)
      quantized().decode(from, sub(to, from), index(0));
    else
      forRange(from, to, 1, [&](Value row) { copyRow(row, sub(row, from)); });
    // The last tile is a whole one too: it repeats some vectors of the tile before it, and gets
    // the same sums.
    Value tiles = over(add(count, index(vectors - 1)), vectors), last = sub(rows, index(vectors));
    NextPanel next = shareOut(to, end, tiles);
    forRange(index(0), tiles, 1, [&](Value tile) {
      panel(from, to, vectors, least(add(first, times(tile, vectors)), last),
            times(tile, panelRows(c) / tileRows), next);
    });
  });
}

/// The panel from row `from` on, divided among the tiles of the panel before it for prefetching.
RowEmitter::NextPanel RowEmitter::shareOut(Value from, Value end, Value tiles) {
  Value count = times(least(sub(end, from), index(panelRows(c))), c.in());
  tiles = times(tiles, panelRows(c) / tileRows);
  Value lines = arith::CeilDivUIOp::create(b, loc, over(count, lineNumbers()), tiles);
  return {from, count, times(lines, lineNumbers())};
}

/// Multiplies rows `from` to `to` with `vectors` vectors from `s` on. There were `before` tiles of
/// the panel with other vectors.
void RowEmitter::panel(Value from, Value to, int64_t vectors, Value s, Value before,
                       const NextPanel &next) {
  Value whole = add(from, multiples(sub(to, from), tileRows));
  auto tiles = [&](Value begin, Value end, int64_t count, function_ref<void(const Tile &)> body) {
    forRange(begin, end, count, [&](Value row) {
      Tile tile{scratch, {}, {}, s, vectors};
      for (int64_t i = 0; i < count; ++i) {
        tile.outputRows.push_back(add(row, index(i)));
        tile.rows.push_back(sub(tile.outputRows.back(), from));
      }
      tile.place = times(tile.rows.front(), vectors);
      body(tile);
    });
  };
  auto forTiles = [&](bool isFirst, function_ref<void(const Tile &)> body) {
    tiles(from, whole, tileRows, [&](const Tile &tile) {
      if (isFirst && !c.stored)
        prefetchShare(next, add(before, over(tile.rows.front(), tileRows)));
      body(tile);
    });
    tiles(whole, to, 1, body);
  };
  const int64_t length = partLength(), last = (c.in() - 1) / length * length;
  if (last == 0)
    return forTiles(/*isFirst=*/true, [&](const Tile &tile) { compute(tile); });
  forTiles(/*isFirst=*/true, [&](const Tile &tile) {
    storePart(tile, steps(zeroSums(tile), tile, index(0), index(length), c.lanes));
  });
  forRange(index(length), index(last), length, [&](Value k) {
    forTiles(/*isFirst=*/false, [&](const Tile &tile) {
      storePart(tile, steps(loadPart(tile), tile, k, add(k, index(length)), c.lanes));
    });
  });
  forTiles(/*isFirst=*/false,
           [&](const Tile &tile) { store(tile, rest(loadPart(tile), tile, last)); });
}

/// Prefetches the part of the next panel that falls to `tile`.
void RowEmitter::prefetchShare(const NextPanel &next, Value tile) {
  Value first = arith::MulIOp::create(b, loc, tile, next.share);
  forRange(first, least(add(first, next.share), next.count), lineNumbers(),
           [&](Value k) { prefetch(w, {next.from, k}); });
}

} // namespace

int64_t ctxc::panelRows(const Contraction &c) {
  int64_t fitting = std::min(panelSize / c.in(), maxPanelRows);
  return fitting / tileRows * tileRows;
}

int64_t ctxc::scratchRows(const Contraction &c) {
  using Scheme = ContractionScheme;
  if (c.scheme == Scheme::Fixed)
    return 0;
  if (c.scheme == Scheme::Integer) // of scales that lie apart
    return BlockReader::hasScalesApart(cast<xf::QuantizedType>(c.stored.getElementType()))
               ? integerStreams(c)
               : 0;
  int64_t streams = c.stored ? std::max(anyStreams, c.readingOfBlocks().streams) : 0;
  int64_t ofPanel = c.scheme == Scheme::Float               ? panelRows(c)
                    : c.scheme == Scheme::Split && c.stored ? RoundedOperands::decodedRows
                                                            : 0;
  return std::max(streams, ofPanel);
}

void ctxc::emitRowsFew(OpBuilder &b, Location loc, const Contraction &c,
                       const RowOperands &operands, Value begin, Value end) {
  RowEmitter(b, loc, c, operands).fewVectors(begin, end);
}

void ctxc::emitRowsMany(OpBuilder &b, Location loc, const Contraction &c,
                        const RowOperands &operands, Value begin, Value end) {
  RowEmitter(b, loc, c, operands).blocked(begin, end);
}
