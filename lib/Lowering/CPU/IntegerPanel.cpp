#include "lib/Lowering/CPU/IntegerPanel.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "lib/Lowering/CPU/ByteProduct.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Bytes of W in a panel, which with its vectors has to stay in the second-level cache.
constexpr int64_t panelBytes = 128 << 10;

/// Vectors in a tile: each has sums in integers and in float32. Those that remain go in smaller
/// tiles.
SmallVector<int64_t> vectorsOfTiles(const Contraction &c) {
  return c.registers >= 32 ? SmallVector<int64_t>{12, 4, 1} : SmallVector<int64_t>{4, 1};
}

class PanelEmitter : LoopBuilder {
public:
  PanelEmitter(OpBuilder &b, Location loc, const Contraction &c, const RowOperands &given,
               Value vectors)
      : LoopBuilder(b, loc), c(c), given(given), vectors(vectors),
        format(cast<xf::QuantizedType>(c.stored.getElementType())),
        shape(ByteBlock::shapeOf(format, c.products)),
        spans(llvm::divideCeil(c.in(), ByteBlock::span)),
        rest(c.in() % ByteBlock::span / CTXC_BYTE_GROUP),
        groupsOfRows(std::max<int64_t>(1, panelBytes / (c.lanes * spans * ByteBlock::span))) {}

  void emit(Value begin, Value end);

private:
  static constexpr int64_t quads = ByteBlock::span / 4; ///< fours of bytes in a span

  Value allocate(MemRefType type);
  // A panel
  void copy(Value from, Value to, Value group);
  void copySpan(const QuantizedRows::Row &row, Value place, Value group, Value span,
                int64_t present);
  void transpose(Value group);
  // A tile: a group of rows and some vectors
  void tiles(Value from, Value to);
  void tile(Value from, Value to, Value group, Value vector, int64_t count);
  Values sumsOf(Value group, Value vector, int64_t count, Value number);
  Values products(ValueRange sums, Value group, Value span, Value number, Value x);
  Value ofVector(Value x, int64_t v, int64_t offset, Type type);

  VectorType floats() { return VectorType::get({c.lanes}, b.getF32Type()); }
  VectorType integers() { return VectorType::get({c.lanes}, b.getI32Type()); }
  Value inAllLanes(Value number) {
    return vector::BroadcastOp::create(b, loc, VectorType::get({c.lanes}, number.getType()),
                                       number);
  }

  const Contraction &c;
  const RowOperands &given;
  Value vectors;
  xf::QuantizedType format;
  ByteBlock::Shape shape;
  const int64_t spans, rest, groupsOfRows;
  Value rowsCopied;     ///< row of the group × four bytes, of one group
  Value panel;          ///< group × four bytes × row
  Value scales, minima; ///< group × span × group of numbers × row
  Value partial;        ///< group of numbers × vector × row
};

Value PanelEmitter::allocate(MemRefType type) {
  Value count =
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(type.getNumElements()));
  Value address = LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()),
                                         type.getElementType(), count, /*alignment=*/64);
  return memrefAt(b, loc, address, type, {});
}

void PanelEmitter::emit(Value begin, Value end) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  rowsCopied = allocate(MemRefType::get({c.lanes, spans * quads}, i32));
  panel = allocate(MemRefType::get({groupsOfRows, spans * quads, c.lanes}, i32));
  auto perGroup = MemRefType::get({groupsOfRows, spans, shape.groups, c.lanes}, f32);
  scales = allocate(perGroup);
  if (shape.hasMinima)
    minima = allocate(perGroup);
  partial = allocate(MemRefType::get({shape.groups, vectorsOfTiles(c)[0], c.lanes}, f32));

  int64_t rows = groupsOfRows * c.lanes;
  forRange(begin, end, rows, [&](Value from) {
    Value to = least(add(from, index(rows)), end);
    forRange(from, to, c.lanes, [&](Value first) {
      Value group = over(sub(first, from), c.lanes);
      copy(first, to, group);
      transpose(group);
    });
    tiles(from, to);
  });
}

//===----------------------------------------------------------------------===//
// The panel
//===----------------------------------------------------------------------===//

/// Decodes a group of rows. Behind the last row, the last row is repeated; what comes of the copies
/// is never stored.
void PanelEmitter::copy(Value from, Value to, Value group) {
  forRange(index(0), index(c.lanes), 1, [&](Value place) {
    QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
    QuantizedRows::Row row = rows.open(least(add(from, place), sub(to, index(1))), 0);
    forRange(index(0), index(c.in() / ByteBlock::span), 1, [&](Value span) {
      copySpan(row, place, group, span, ByteBlock::span / CTXC_BYTE_GROUP);
    });
    if (rest)
      copySpan(row, place, group, index(spans - 1), rest);
  });
}

void PanelEmitter::copySpan(const QuantizedRows::Row &row, Value place, Value group, Value span,
                            int64_t present) {
  QuantizedRows rows(b, loc, c, given.address, given.scratchAddress, given.scratch);
  std::unique_ptr<ByteBlock> reader =
      ByteBlock::open(b, loc, format, rows.span(row, span, present));
  for (int64_t i = 0; i < quads / c.lanes; ++i)
    vector::StoreOp::create(
        b, loc, vector::BitCastOp::create(b, loc, integers(), reader->integers(i)), rowsCopied,
        ValueRange{place, add(times(span, quads), index(i * c.lanes))});
  auto put = [&](Value numbers, Value into) {
    for (int64_t i = 0; i < shape.groups; ++i)
      memref::StoreOp::create(b, loc,
                              vector::ExtractOp::create(b, loc, numbers, ArrayRef<int64_t>{i}),
                              into, ValueRange{group, span, index(i), place});
  };
  put(reader->scales(), scales);
  if (shape.hasMinima)
    put(reader->minima(), minima);
}

/// The fours of a group's rows side by side.
void PanelEmitter::transpose(Value group) {
  forRange(index(0), index(spans * quads), c.lanes, [&](Value first) {
    Values rows;
    for (int64_t i = 0; i < c.lanes; ++i)
      rows.push_back(
          vector::LoadOp::create(b, loc, integers(), rowsCopied, ValueRange{index(i), first}));
    transposeSquare(b, loc, rows);
    for (int64_t i = 0; i < c.lanes; ++i)
      vector::StoreOp::create(b, loc, rows[i], panel,
                              ValueRange{group, add(first, index(i)), index(0)});
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void PanelEmitter::tiles(Value from, Value to) {
  Value done = index(0), groups = over(add(sub(to, from), index(c.lanes - 1)), c.lanes);
  for (int64_t count : vectorsOfTiles(c)) {
    Value last = add(done, multiples(sub(given.rows, done), count));
    forRange(done, last, count, [&](Value vector) {
      forRange(index(0), groups, 1, [&](Value group) { tile(from, to, group, vector, count); });
    });
    done = last;
  }
}

void PanelEmitter::tile(Value from, Value to, Value group, Value vector, int64_t count) {
  forRange(index(0), index(shape.groups), 1, [&](Value number) {
    for (auto [v, sum] : llvm::enumerate(sumsOf(group, vector, count, number)))
      vector::StoreOp::create(b, loc, sum, partial, ValueRange{number, index(v), index(0)});
  });
  Value first = add(from, times(group, c.lanes));
  Value mask = vector::CreateMaskOp::create(b, loc, VectorType::get({c.lanes}, b.getI1Type()),
                                            sub(to, first));
  for (int64_t v = 0; v < count; ++v) {
    Values parts;
    for (int64_t i = 0; i < shape.groups; ++i)
      parts.push_back(vector::LoadOp::create(b, loc, floats(), partial,
                                             ValueRange{index(i), index(v), index(0)}));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = arith::AddFOp::create(b, loc, parts[i], parts[i + parts.size() / 2]);
    store(parts.front(), given.y, {add(vector, index(v)), first}, mask);
  }
}

/// The sums of group `number` of all spans, of each vector.
PanelEmitter::Values PanelEmitter::sumsOf(Value group, Value vector, int64_t count, Value number) {
  int64_t perGroup = shape.groups / (ByteBlock::span / CTXC_BYTE_GROUP);
  Value end = index(spans);
  if (rest) { // groups that the last span lacks
    Value isThere = isLess(number, index(rest * perGroup));
    end = arith::SelectOp::create(b, loc, isThere, end, index(spans - 1));
  }
  Value start = times(vector, SpanRounder::stride(SpanRounder::Bytes, c.in()));
  return carried(index(0), end, 1, Values(count, zeros(floats())),
                 [&](ValueRange sums, Value span) {
                   Value bytes = add(start, times(span, sizeof(ctxc_byte_span)));
                   Value x = LLVM::GEPOp::create(b, loc, vectors.getType(), b.getI8Type(), vectors,
                                                 ArrayRef<LLVM::GEPArg>{toI64(b, loc, bytes)});
                   return products(sums, group, span, number, x);
                 });
}

Value PanelEmitter::ofVector(Value x, int64_t v, int64_t offset, Type type) {
  Value at =
      LLVM::GEPOp::create(b, loc, x.getType(), b.getI8Type(), x,
                          ArrayRef<LLVM::GEPArg>{int32_t(
                              v * SpanRounder::stride(SpanRounder::Bytes, c.in()) + offset)});
  return inAllLanes(LLVM::LoadOp::create(b, loc, type, at, /*alignment=*/4));
}

/// sums + the products of group `number` of a span; `x` is the address of the span of the first
/// vector.
PanelEmitter::Values PanelEmitter::products(ValueRange sums, Value group, Value span, Value number,
                                            Value x) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto bytes = VectorType::get({4 * c.lanes}, b.getI8Type());
  auto moved = [&](Value by, int64_t size) -> Value {
    return LLVM::GEPOp::create(b, loc, x.getType(), b.getI8Type(), x,
                               ArrayRef<LLVM::GEPArg>{toI64(b, loc, times(by, size))});
  };
  bool isHalved = shape.group() < CTXC_BYTE_GROUP;
  Value numbers = moved(number, shape.group()), fields = moved(number, 4),
        shared = isHalved ? moved(over(number, 2), 4) : fields;
  int64_t sumsAt =
      isHalved ? offsetof(ctxc_byte_span, of_halves) : offsetof(ctxc_byte_span, negative_sums);
  Values totals;
  for (size_t v = 0; v < sums.size(); ++v) {
    Value start = zeros(integers());
    if (shape.zeroBits >= 0) {
      auto bits = SplatElementsAttr::get(integers(), b.getI32IntegerAttr(int32_t(shape.zeroBits)));
      start = arith::ShLIOp::create(b, loc, ofVector(fields, v, sumsAt, i32),
                                    arith::ConstantOp::create(b, loc, bits));
    }
    totals.push_back(start);
  }
  int64_t each = shape.group() / 4;
  Value first = add(times(span, quads), times(number, each));
  for (int64_t i = 0; i < each; ++i) {
    Value w = vector::LoadOp::create(b, loc, integers(), panel,
                                     ValueRange{group, add(first, index(i)), index(0)});
    w = vector::BitCastOp::create(b, loc, bytes, w);
    for (size_t v = 0; v < sums.size(); ++v) {
      Value four = vector::BitCastOp::create(b, loc, bytes, ofVector(numbers, v, 4 * i, i32));
      totals[v] = addByteProducts(b, loc, c.products, totals[v], w, four, shape.range);
    }
  }
  auto ofGroup = [&](Value memory) {
    return vector::LoadOp::create(b, loc, floats(), memory,
                                  ValueRange{group, span, number, index(0)});
  };
  Value scale = ofGroup(scales), minimum = shape.hasMinima ? Value(ofGroup(minima)) : Value();
  Values next;
  for (size_t v = 0; v < sums.size(); ++v) {
    Value ofX = ofVector(shared, v, offsetof(ctxc_byte_span, scales), f32);
    Value real = arith::SIToFPOp::create(b, loc, floats(), totals[v]);
    next.push_back(
        vector::FMAOp::create(b, loc, arith::MulFOp::create(b, loc, scale, ofX), real, sums[v]));
    if (minimum)
      next.back() = vector::FMAOp::create(
          b, loc, minimum, ofVector(fields, v, offsetof(ctxc_byte_span, scaled_sums), f32),
          next.back());
  }
  return next;
}

} // namespace

void ctxc::emitIntegerMany(OpBuilder &b, Location loc, const Contraction &c,
                           const RowOperands &operands, Value vectors, Value begin, Value end) {
  PanelEmitter(b, loc, c, operands, vectors).emit(begin, end);
}
