#include "lib/Lowering/CPU/FixedContraction.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "ctxc/Numerics/FixedVectors.h"
#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/StoredLayout.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Rows of W in a tile of many vectors, and vectors in it.
constexpr int64_t tileRows = 4, tileVectors = 4;
/// The most rows of W in a tile of one or two vectors, one of each stream.
constexpr int64_t mostStreams = 4;
/// Groups of 32 in a span.
constexpr int64_t wholeSpan = ByteBlock::span / CTXC_BYTE_GROUP;
/// Bytes of W in a panel, which has to stay in the second-level cache beside a tile's vectors.
constexpr int64_t bytesOfPanel = 192 << 10;

class FixedEmitter : LoopBuilder {
public:
  FixedEmitter(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &given,
               Value vectors)
      : LoopBuilder(b, loc), c(c), given(given), vectors(vectors),
        format(cast<xf::QuantizedType>(c.stored.getElementType())),
        shape(ByteBlock::shapeOf(format, c.products)),
        spans(llvm::divideCeil(c.in(), ByteBlock::span)),
        rest(c.in() % ByteBlock::span / CTXC_BYTE_GROUP), record(ByteBlock::span + 64),
        panelRows(std::max(bytesOfPanel / (spans * record) / tileRows, int64_t(1)) * tileRows) {}

  void few(Value begin, Value end);
  void many(Value begin, Value end);

private:
  using Spans = SmallVector<std::unique_ptr<RowSpan>>;

  struct Tile {
    SmallVector<Value> rows; ///< of y's columns
    Value vector;            ///< index of the first vector
    int64_t count;           ///< how many vectors
  };
  /// Computes the tile's part of y. `spansAt` opens a span of each of its rows, of which so many
  /// groups of 32 are there.
  void compute(const Tile &tile, function_ref<Spans(Value, int64_t)> spansAt);
  /// One span, of which `present` groups of 32 are there: sums += its products, the sums of one row
  /// side by side.
  Values step(ValueRange before, const Tile &tile, Spans &rows, Value span, int64_t present);
  Value ofMinima(Value minima, const Tile &tile, int64_t i, Value span);

  /// Something of a span of vector number i of the tile.
  Value ofVector(const Tile &tile, int64_t i, Value span, int64_t offset, Type type);
  Value shuffled(Value v, Value w, ArrayRef<int64_t> from) {
    return vector::ShuffleOp::create(b, loc, v, w, from);
  }
  VectorType floats(int64_t count) { return VectorType::get({count}, b.getF32Type()); }
  VectorType integers() { return VectorType::get({c.lanes}, b.getI32Type()); }

  // A panel: spans of rows, with their integers, scales and minima one after the other
  class PanelSpan;
  void copy(Value row, Value place);
  Value inPanel(Value place, Value span, int64_t offset);

  const Contraction &c;
  const RowOperands &given;
  Value vectors;
  xf::QuantizedType format;
  ByteBlock::Shape shape;
  const int64_t spans, rest; ///< the last span has so many groups of 32, unless it is whole (0)
  const int64_t record, panelRows;
  Value panel;
};

/// A span of a row of the panel.
class FixedEmitter::PanelSpan : public RowSpan {
public:
  PanelSpan(FixedEmitter &of, Value place, Value span) : of(of), place(place), span(span) {}
  Value run(int64_t i) override {
    return load(i * ByteBlock::runBytes, VectorType::get({ByteBlock::runBytes}, of.b.getI8Type()));
  }
  Value scales() override { return load(ByteBlock::span, of.floats(of.shape.groups)); }
  Value minima() override {
    if (!of.shape.hasMinima)
      return {};
    return load(ByteBlock::span + of.shape.groups * int64_t(sizeof(float)),
                of.floats(of.shape.groups));
  }

private:
  Value load(int64_t offset, Type type) {
    return LLVM::LoadOp::create(of.b, of.loc, type, of.inPanel(place, span, offset),
                                /*alignment=*/32);
  }
  FixedEmitter &of;
  Value place, span;
};

} // namespace

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

Value FixedEmitter::ofVector(const Tile &tile, int64_t i, Value span, int64_t offset, Type type) {
  Value address = SpanRounder::at(b, loc, SpanRounder::Fixed, c.in(), vectors,
                                  add(tile.vector, index(i)), span, offset);
  return LLVM::LoadOp::create(b, loc, type, address, /*alignment=*/4);
}

/// The groups' minima times their Σ u v, in the first lanes.
Value FixedEmitter::ofMinima(Value minima, const Tile &tile, int64_t i, Value span) {
  assert(shape.groups == 8 && "the sums are of 32 numbers");
  Value sums = ofVector(tile, i, span, offsetof(ctxc_fixed_span, scaled_sums), floats(8));
  SmallVector<int64_t> order(c.lanes);
  std::iota(order.begin(), order.end(), 0);
  return shuffled(arith::MulFOp::create(b, loc, minima, sums), zeros(floats(8)), order);
}

FixedEmitter::Values FixedEmitter::step(ValueRange before, const Tile &tile, Spans &rows,
                                        Value span, int64_t present) {
  auto bytes = VectorType::get({ByteBlock::runBytes}, b.getI8Type());
  auto shifted = [&](Value v, int64_t by) -> Value {
    auto amount = SplatElementsAttr::get(integers(), b.getI32IntegerAttr(int32_t(by)));
    return arith::ShLIOp::create(b, loc, v, arith::ConstantOp::create(b, loc, amount));
  };
  Values sums(before), scales;
  for (auto [row, stored] : llvm::enumerate(rows)) {
    scales.push_back(stored->scales());
    if (Value minima = stored->minima())
      for (int64_t v = 0; v < tile.count; ++v) {
        Value &sum = sums[row * tile.count + v];
        sum = arith::AddFOp::create(b, loc, sum, ofMinima(minima, tile, v, span));
      }
  }
  for (int64_t half = 0; half < (present > wholeSpan / 2 ? 2 : 1); ++half) {
    SmallVector<int64_t> groupOf;
    for (int64_t lane = 0; lane < c.lanes; ++lane)
      groupOf.push_back((128 * half + 8 * lane) / shape.group());
    Values ws, ds;
    for (auto [stored, all] : llvm::zip(rows, scales)) {
      ws.append({stored->run(2 * half), stored->run(2 * half + 1)});
      ds.push_back(shuffled(all, all, groupOf));
    }
    for (int64_t v = 0; v < tile.count; ++v) {
      auto ofHalf = [&](int64_t offset, VectorType type) {
        return ofVector(tile, v, span, offset + half * ByteBlock::runBytes, type);
      };
      Value ofZero;
      if (shape.zeroBits >= 0)
        ofZero =
            shifted(ofHalf(offsetof(ctxc_fixed_span, negative_eights), integers()), shape.zeroBits);
      Values t(rows.size(), zeros(integers()));
      for (int64_t digit = 0; digit < CTXC_FIXED_DIGITS; ++digit) {
        Value xs[2];
        for (int64_t i = 0; i < 2; ++i)
          xs[i] = ofVector(tile, v, span,
                           digit * CTXC_FIXED_SPAN + (2 * half + i) * ByteBlock::runBytes, bytes);
        for (size_t row = 0; row < rows.size(); ++row) {
          if (digit)
            t[row] = shifted(t[row], 8);
          for (int64_t i = 0; i < 2; ++i)
            t[row] =
                addByteProducts(b, loc, c.products, t[row], ws[2 * row + i], xs[i], shape.range);
        }
      }
      Value units = ofHalf(offsetof(ctxc_fixed_span, units), floats(c.lanes));
      for (size_t row = 0; row < rows.size(); ++row) {
        Value total = ofZero ? add(t[row], ofZero) : t[row];
        Value real = arith::SIToFPOp::create(b, loc, floats(c.lanes), total);
        Value &sum = sums[row * tile.count + v];
        sum =
            vector::FMAOp::create(b, loc, real, arith::MulFOp::create(b, loc, ds[row], units), sum);
      }
    }
  }
  return sums;
}

void FixedEmitter::compute(const Tile &tile, function_ref<Spans(Value, int64_t)> spansAt) {
  int64_t count = tile.rows.size() * tile.count;
  Values sums(count, zeros(floats(c.lanes)));
  sums = carried(index(0), index(c.in() / ByteBlock::span), 1, sums,
                 [&](ValueRange before, Value span) {
                   Spans rows = spansAt(span, wholeSpan);
                   return step(before, tile, rows, span, wholeSpan);
                 });
  if (rest) {
    Spans rows = spansAt(index(spans - 1), rest);
    sums = step(sums, tile, rows, index(spans - 1), rest);
  }
  // Those of several vectors are added up together: that takes fewer shuffles for each.
  for (int64_t at = 0, together; at < count; at += together) {
    together = llvm::bit_floor<uint64_t>(std::min(c.lanes, count - at));
    Value all = totals(b, loc, to_vector(ArrayRef(sums).slice(at, together)));
    for (int64_t i = 0; i < together; ++i) {
      Value total = vector::ExtractOp::create(b, loc, all, ArrayRef<int64_t>{i});
      Value vector = add(tile.vector, index((at + i) % tile.count));
      memref::StoreOp::create(b, loc, total, given.y,
                              ValueRange{vector, tile.rows[(at + i) / tile.count]});
    }
  }
}

//===----------------------------------------------------------------------===//
// Few vectors
//===----------------------------------------------------------------------===//

void FixedEmitter::few(Value begin, Value end) {
  // The registers do not hold what two vectors take of four rows in blocks of 256.
  int64_t ofOne = std::min(c.readingOfBlocks().streams, mostStreams),
          ofTwo = format.getBlockElements() == 256 ? std::min<int64_t>(ofOne, 2) : ofOne;
  streamedInPairs(begin, end, given.rows, ofOne, ofTwo, [&](ArrayRef<Value> at) {
    QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
    SmallVector<QuantizedRows::Row> stored;
    for (auto [slot, row] : llvm::enumerate(at))
      stored.push_back(rows.open(row, slot));
    return [this, stored, at = to_vector(at)](Value vector, int64_t count) {
      compute({at, vector, count}, [&](Value span, int64_t present) {
        QuantizedRows inLoop(b, loc, c, given.address, given.scratchAddress, given.scratch);
        Spans all;
        for (const QuantizedRows::Row &row : stored) {
          if (c.readingOfBlocks().asksAhead && present == wholeSpan)
            inLoop.askAhead(row, times(span, ByteBlock::bytesOf(format)),
                            ByteBlock::bytesOf(format));
          all.push_back(ByteBlock::open(b, loc, format, inLoop.span(row, span, present)));
        }
        return all;
      });
    };
  });
}

//===----------------------------------------------------------------------===//
// Many vectors
//===----------------------------------------------------------------------===//

Value FixedEmitter::inPanel(Value place, Value span, int64_t offset) {
  Value at = add(times(add(times(place, spans), span), record), index(offset));
  return LLVM::GEPOp::create(b, loc, panel.getType(), b.getI8Type(), panel,
                             ArrayRef<LLVM::GEPArg>{toI64(b, loc, at)});
}

/// Writes row `row` of W into the panel's row `place`.
void FixedEmitter::copy(Value row, Value place) {
  QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
  QuantizedRows::Row stored = rows.open(row, 0);
  auto copySpan = [&](Value span, int64_t present) {
    QuantizedRows inLoop(b, loc, c, given.address, given.scratchAddress, given.scratch);
    std::unique_ptr<RowSpan> from =
        ByteBlock::open(b, loc, format, inLoop.span(stored, span, present));
    auto put = [&](Value v, int64_t offset) {
      LLVM::StoreOp::create(b, loc, v, inPanel(place, span, offset), /*alignment=*/32);
    };
    for (int64_t i = 0; i < ByteBlock::span / ByteBlock::runBytes; ++i)
      put(from->run(i), i * ByteBlock::runBytes);
    put(from->scales(), ByteBlock::span);
    if (Value minima = from->minima())
      put(minima, ByteBlock::span + shape.groups * int64_t(sizeof(float)));
  };
  forRange(index(0), index(c.in() / ByteBlock::span), 1,
           [&](Value span) { copySpan(span, wholeSpan); });
  if (rest)
    copySpan(index(spans - 1), rest);
}

void FixedEmitter::many(Value begin, Value end) {
  panel = LLVM::AllocaOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI8Type(),
      LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                               b.getI64IntegerAttr(panelRows * spans * record)),
      /*alignment=*/64);
  forRange(begin, end, panelRows, [&](Value from) {
    Value to = least(add(from, index(panelRows)), end), count = sub(to, from);
    forRange(index(0), count, 1, [&](Value place) { copy(add(from, place), place); });
    // The last tile is a whole one too: it repeats some vectors of the tile before it, and gets the
    // same sums.
    Value last = sub(given.rows, index(tileVectors));
    auto tiles = [&](Value first, Value behind, int64_t ofRows, Value vector) {
      forRange(first, behind, ofRows, [&](Value place) {
        Tile tile{{}, least(vector, last), tileVectors};
        for (int64_t i = 0; i < ofRows; ++i)
          tile.rows.push_back(add(from, add(place, index(i))));
        compute(tile, [&](Value span, int64_t) {
          Spans all;
          for (int64_t i = 0; i < ofRows; ++i)
            all.push_back(std::make_unique<PanelSpan>(*this, add(place, index(i)), span));
          return all;
        });
      });
    };
    forRange(index(0), given.rows, tileVectors, [&](Value vector) {
      Value whole = multiples(count, tileRows);
      tiles(index(0), whole, tileRows, vector);
      tiles(whole, count, 1, vector);
    });
  });
}

bool ctxc::multipliesFixed(xf::QuantizedType format, const CpuTarget &target,
                           ByteProducts products) {
  // Eight products of eight bits would need 33 bits, and E2M1 is looked up faster, as float32.
  return products == ByteProducts::X86Dot && target.lanes == 16 &&
         layoutOf(format).numbers == blocks::Unsigned;
}

void ctxc::emitFixed(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &operands,
                     Value vectors, Value begin, Value end) {
  Value many =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, operands.rows,
                            arith::ConstantIndexOp::create(b, loc, Contraction::manyVectors));
  auto branch = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  FixedEmitter(b, loc, c, operands, vectors).many(begin, end);
  b.setInsertionPointToStart(branch.elseBlock());
  FixedEmitter(b, loc, c, operands, vectors).few(begin, end);
}
