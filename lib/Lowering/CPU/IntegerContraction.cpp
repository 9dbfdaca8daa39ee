#include "lib/Lowering/CPU/IntegerContraction.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/ByteProduct.h"
#include "lib/Lowering/CPU/IntegerPanel.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CallFrame.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// The rows of few vectors' products.
class IntegerEmitter : LoopBuilder {
public:
  IntegerEmitter(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &given,
                 Value vectors)
      : LoopBuilder(b, loc), c(c), given(given), vectors(vectors),
        format(cast<xf::QuantizedType>(c.stored.getElementType())),
        shape(ByteBlock::shapeOf(format, c.products)) {}

  void few(Value begin, Value end);

private:
  struct Tile {
    SmallVector<Value> rows; ///< of W
    SmallVector<QuantizedRows::Row> stored;
    Value vector;  ///< index of the first vector
    int64_t count; ///< how many vectors
  };
  void compute(const Tile &tile);
  Values step(ValueRange sums, const Tile &tile, Value span, int64_t present);

  // Numbers of each group of each row, row after row, in vectors of `lanes` (or of all, where these
  // are fewer).
  Values laidOut(ArrayRef<Value> rows);
  Values totals(const Tile &tile, ArrayRef<std::unique_ptr<ByteBlock>> readers, Value span,
                int64_t from, int64_t count, int64_t lanes);
  Value halvesAdded(Value x, Value y, int64_t lanes);
  Values totalsInPairs(const Tile &tile, ArrayRef<std::unique_ptr<ByteBlock>> readers, Value span,
                       size_t row);
  Value pairsAdded(Value x, Value y);
  Value partOf(Value v, int64_t from, int64_t count) {
    return vector::ExtractStridedSliceOp::create(b, loc, v, ArrayRef<int64_t>{from},
                                                 ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  }

  // Vectors
  Value ofVector(const Tile &tile, int64_t i, Value span, int64_t offset, Type type);
  /// Field of all groups of a span (vector<groups>), laid out for as many rows as the tile has.
  Values field(const Tile &tile, int64_t i, Value span, int64_t offset, Type element);

  /// Whether four lanes have the sums of a group that fit 16 bits, and AVX-512 adds these in pairs.
  bool addsInPairs() const {
    int64_t products = shape.hasPieces ? 8 : shape.group() == 16 ? 4 : 0;
    return c.products == ByteProducts::X86Dot && c.lanes == 16 && products &&
           products * shape.range.largest * 127 < 1 << 15;
  }

  int64_t leaves() const { return ByteBlock::span / (4 * c.lanes); }
  /// Lanes that a group takes in a register that bytes are multiplied into.
  int64_t lanesOfGroup() const { return std::min(shape.group() / 4, c.lanes); }

  const Contraction &c;
  const RowOperands &given;
  Value vectors;
  xf::QuantizedType format;
  ByteBlock::Shape shape;
};

void IntegerEmitter::few(Value begin, Value end) {
  // A tile has a row of each stream.
  constexpr int64_t ofTwo = 2;
  streamedInPairs(begin, end, given.rows, integerStreams(c), ofTwo, [&](ArrayRef<Value> at) {
    QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
    Tile tile{SmallVector<Value>(at), {}, {}, 0};
    for (auto [slot, row] : llvm::enumerate(at))
      tile.stored.push_back(rows.open(row, slot));
    return [this, tile](Value vector, int64_t count) mutable {
      tile.vector = vector, tile.count = count;
      compute(tile);
    };
  });
}

Value IntegerEmitter::ofVector(const Tile &tile, int64_t i, Value span, int64_t offset, Type type) {
  Value address = SpanRounder::at(b, loc, SpanRounder::Bytes, c.in(), vectors,
                                  add(tile.vector, index(i)), span, offset);
  return LLVM::LoadOp::create(b, loc, type, address, /*alignment=*/16);
}

/// x's halves of blocks of `lanes`, and then y's, where there is a y: the first plus the second.
Value IntegerEmitter::halvesAdded(Value x, Value y, int64_t lanes) {
  int64_t size = cast<VectorType>(x.getType()).getDimSize(0);
  SmallVector<int64_t> first, second;
  for (int64_t block = 0; block < (y ? 2 : 1) * size; block += lanes)
    for (int64_t i = 0; i < lanes / 2; ++i) {
      first.push_back(block + i);
      second.push_back(block + lanes / 2 + i);
    }
  Value other = y ? y : x;
  Value low = vector::ShuffleOp::create(b, loc, x, other, first),
        high = vector::ShuffleOp::create(b, loc, x, other, second);
  if (isa<FloatType>(cast<VectorType>(x.getType()).getElementType()))
    return arith::AddFOp::create(b, loc, low, high);
  return add(low, high);
}

/// For each vector, leaves `from` to `from` + `count` of the tile, in one register whose groups
/// have `lanes` lanes. A leaf is what one register has of a row, or the registers that a group
/// takes. The registers of one half are added up before those of the other are computed, so that
/// few of them live.
IntegerEmitter::Values IntegerEmitter::totals(const Tile &tile,
                                              ArrayRef<std::unique_ptr<ByteBlock>> readers,
                                              Value span, int64_t from, int64_t count,
                                              int64_t lanes) {
  if (count > 1) {
    Values low = totals(tile, readers, span, from, count / 2, 2 * lanes),
           high = totals(tile, readers, span, from + count / 2, count / 2, 2 * lanes);
    for (auto [x, y] : llvm::zip(low, high))
      x = halvesAdded(x, y, 2 * lanes);
    return low;
  }
  int64_t width = 4 * c.lanes, together = std::max<int64_t>(1, shape.group() / width),
          perRow = leaves() / together;
  Values sums(tile.count, zeros(VectorType::get({c.lanes}, b.getI32Type())));
  for (int64_t i = 0; i < together; ++i) {
    int64_t part = from % perRow * together + i;
    Value w = readers[from / perRow]->integers(part);
    for (auto [v, sum] : llvm::enumerate(sums))
      sum = addByteProducts(b, loc, c.products, sum, w,
                            ofVector(tile, v, span, part * width, w.getType()), shape.range);
  }
  // Where a row's registers do not suffice, each is folded by itself.
  for (int64_t wide = lanesOfGroup(); wide > lanes; wide /= 2)
    for (Value &sum : sums)
      sum = halvesAdded(sum, {}, wide);
  return sums;
}

/// Of each four lanes of x, and then of y, the sums of two lanes each, which fit 16 bits before.
Value IntegerEmitter::pairsAdded(Value x, Value y) {
  auto call = [&](StringRef name, Type type, Value v, Value w) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), ValueRange{v, w})
        .getResult(0);
  };
  auto sixteen = VectorType::get({2 * c.lanes}, b.getI16Type());
  Value all = call("llvm.x86.avx512.packssdw.512", sixteen, x, y);
  auto ones = SplatElementsAttr::get(sixteen, b.getI16IntegerAttr(1));
  return call("llvm.x86.avx512.pmaddw.d.512", x.getType(), all,
              arith::ConstantOp::create(b, loc, ones));
}

/// For each vector, the groups' totals of a register of `laidOut`, whose first row is `row`: of the
/// two halves of a row that has 16 groups, or of two rows that have 8, or the last one.
IntegerEmitter::Values IntegerEmitter::totalsInPairs(const Tile &tile,
                                                     ArrayRef<std::unique_ptr<ByteBlock>> readers,
                                                     Value span, size_t row) {
  bool isHalf = shape.groups == c.lanes;
  size_t parts = isHalf ? 2 : std::min<size_t>(2, readers.size() - row);
  Value none = zeros(VectorType::get({c.lanes}, b.getI32Type()));
  SmallVector<Values> pairs(tile.count); // of each part, two lanes of each group
  for (size_t part = 0; part < parts; ++part) {
    ByteBlock &reader = *readers[isHalf ? row : row + part];
    SmallVector<Values> sums(tile.count, Values(2, none)); // four lanes of each group
    int64_t first = isHalf ? 2 * part : 0, runs = isHalf ? 2 : 4;
    for (int64_t i = 0; i < runs; ++i) {
      Value w = isHalf ? reader.integers(first + i) : reader.pieces(i);
      int64_t offset =
          isHalf ? offsetof(ctxc_byte_span, numbers) : offsetof(ctxc_byte_span, pieces);
      offset += (first + i) * ByteBlock::runBytes;
      for (auto [v, ofVectors] : llvm::enumerate(sums)) {
        Value &sum = ofVectors[2 * i / runs], x = ofVector(tile, v, span, offset, w.getType());
        sum = addByteProducts(b, loc, c.products, sum, w, x, shape.range);
      }
    }
    for (auto [two, four] : llvm::zip(pairs, sums))
      two.push_back(pairsAdded(four[0], four[1]));
  }
  Values all;
  for (Values &two : pairs) {
    // A quarter of a register has groups g and g + 4 of half a row, or g and g + 1 of a row.
    SmallVector<int64_t> first, second;
    for (int64_t group = 0; group < int64_t(parts) * 8; ++group)
      first.push_back(isHalf ? group / 8 * c.lanes + group % 4 * 4 + group / 4 % 2 * 2 : 2 * group);
    for (int64_t at : first)
      second.push_back(at + 1);
    all.push_back(add(vector::ShuffleOp::create(b, loc, two.front(), two.back(), first),
                      vector::ShuffleOp::create(b, loc, two.front(), two.back(), second)));
  }
  return all;
}

IntegerEmitter::Values IntegerEmitter::laidOut(ArrayRef<Value> rows) {
  int64_t groups = shape.groups;
  Values all;
  if (groups > c.lanes) {
    for (Value row : rows)
      for (int64_t i = 0; i < groups; i += c.lanes)
        all.push_back(partOf(row, i, c.lanes));
    return all;
  }
  if (groups == c.lanes || rows.size() == 1)
    return Values(rows);
  SmallVector<int64_t> order(2 * groups);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < rows.size(); i += 2)
    all.push_back(vector::ShuffleOp::create(b, loc, rows[i], rows[i + 1], order));
  return all;
}

IntegerEmitter::Values IntegerEmitter::field(const Tile &tile, int64_t i, Value span,
                                             int64_t offset, Type element) {
  bool isOfHalves = offset == offsetof(ctxc_byte_span, of_halves);
  int64_t stored = isOfHalves ? 16 : 8;
  Value all = ofVector(tile, i, span, offset, VectorType::get({stored}, element));
  if (stored < shape.groups) {
    SmallVector<int64_t> twice;
    for (int64_t g = 0; g < shape.groups; ++g)
      twice.push_back(g / 2);
    all = vector::ShuffleOp::create(b, loc, all, all, twice);
  }
  return laidOut(Values(tile.rows.size(), all));
}

/// One span: sums += its products. The sums of each vector are as laidOut has them.
IntegerEmitter::Values IntegerEmitter::step(ValueRange sums, const Tile &tile, Value span,
                                            int64_t present) {
  QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
  SmallVector<std::unique_ptr<ByteBlock>> readers;
  Values scales, minima;
  for (const QuantizedRows::Row &row : tile.stored) {
    if (c.readingOfBlocks().asksAhead && present == ByteBlock::span / CTXC_BYTE_GROUP)
      rows.askAhead(row, times(span, ByteBlock::bytesOf(format)), ByteBlock::bytesOf(format));
    readers.push_back(ByteBlock::open(b, loc, format, rows.span(row, span, present)));
    scales.push_back(readers.back()->scales());
    if (shape.hasMinima)
      minima.push_back(readers.back()->minima());
  }
  scales = laidOut(scales);
  if (shape.hasMinima)
    minima = laidOut(minima);

  // As many leaves go together as have all lanes of a group.
  int64_t size = scales.size(), count = lanesOfGroup();
  int64_t together = std::max<int64_t>(1, shape.group() / (4 * c.lanes));
  int64_t all = leaves() / together * int64_t(tile.rows.size());
  count = std::min(count, all);
  SmallVector<Values> integers; // of each register of the layout
  if (addsInPairs())
    for (size_t row = 0; row < readers.size(); row += c.lanes / shape.groups)
      integers.push_back(totalsInPairs(tile, readers, span, row));
  else
    for (int64_t from = 0; from < all; from += count)
      integers.push_back(totals(tile, readers, span, from, count, 1));

  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Values next(sums);
  for (int64_t v = 0; v < tile.count; ++v) {
    Values ofX = field(tile, v, span, offsetof(ctxc_byte_span, scales), f32), zero, sumsOfX;
    if (shape.zeroBits >= 0)
      zero = field(tile, v, span,
                   shape.groups == 16 ? offsetof(ctxc_byte_span, of_halves)
                                      : offsetof(ctxc_byte_span, negative_sums),
                   i32);
    if (shape.hasMinima)
      sumsOfX = field(tile, v, span, offsetof(ctxc_byte_span, scaled_sums), f32);
    for (int64_t i = 0; i < size; ++i) {
      Value integer = integers[i][v];
      auto type = cast<VectorType>(integer.getType());
      if (shape.zeroBits >= 0) {
        auto bits = SplatElementsAttr::get(type, b.getI32IntegerAttr(int32_t(shape.zeroBits)));
        integer = add(integer, arith::ShLIOp::create(b, loc, zero[i],
                                                     arith::ConstantOp::create(b, loc, bits)));
      }
      Value number =
          arith::SIToFPOp::create(b, loc, VectorType::get(type.getShape(), f32), integer);
      Value &sum = next[v * size + i];
      sum = vector::FMAOp::create(b, loc, arith::MulFOp::create(b, loc, scales[i], ofX[i]), number,
                                  sum);
      if (shape.hasMinima)
        sum = vector::FMAOp::create(b, loc, minima[i], sumsOfX[i], sum);
    }
  }
  return next;
}

void IntegerEmitter::compute(const Tile &tile) {
  int64_t rows = tile.rows.size(), numbers = rows * shape.groups,
          width = std::min(c.lanes, numbers), size = numbers / width;
  Values sums(tile.count * size, zeros(VectorType::get({width}, b.getF32Type())));
  int64_t whole = c.in() / ByteBlock::span, rest = c.in() % ByteBlock::span / CTXC_BYTE_GROUP;
  sums = carried(index(0), index(whole), 1, sums, [&](ValueRange before, Value span) {
    return step(before, tile, span, ByteBlock::span / CTXC_BYTE_GROUP);
  });
  if (rest)
    sums = step(sums, tile, index(whole), rest);

  for (int64_t v = 0; v < tile.count; ++v)
    for (int64_t row = 0; row < rows; ++row) {
      Values parts;
      for (int64_t at = row * shape.groups; at < (row + 1) * shape.groups; at += width)
        parts.push_back(sums[v * size + at / width]);
      if (width > shape.groups)
        parts = {partOf(parts.front(), row * shape.groups % width, shape.groups)};
      for (; parts.size() > 1; parts.resize(parts.size() / 2))
        for (size_t i = 0; i < parts.size() / 2; ++i)
          parts[i] = arith::AddFOp::create(b, loc, parts[i], parts[i + parts.size() / 2]);
      Value total = parts.front();
      for (int64_t lanes = cast<VectorType>(total.getType()).getDimSize(0); lanes > 1; lanes /= 2)
        total = halvesAdded(total, {}, lanes);
      memref::StoreOp::create(b, loc,
                              vector::ExtractOp::create(b, loc, total, ArrayRef<int64_t>{0}),
                              given.y, ValueRange{add(tile.vector, index(v)), tile.rows[row]});
    }
}

} // namespace

int64_t ctxc::integerStreams(const Contraction &c) { return c.lanes == 16 ? 4 : 2; }

void ctxc::emitInteger(OpBuilder &b, Location loc, const Contraction &c,
                       const RowOperands &operands, Value vectors, Value begin, Value end) {
  Value many =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, operands.rows,
                            arith::ConstantIndexOp::create(b, loc, Contraction::manyVectors));
  auto branch = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitIntegerMany(b, loc, c, operands, vectors, begin, end);
  b.setInsertionPointToStart(branch.elseBlock());
  IntegerEmitter(b, loc, c, operands, vectors).few(begin, end);
}
