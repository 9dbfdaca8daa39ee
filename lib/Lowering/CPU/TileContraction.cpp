#include "lib/Lowering/CPU/TileContraction.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/RoundedPanel.h"
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// Rows of a register, and numbers of bfloat16 in a row.
constexpr int64_t tileRows = 16, tileNumbers = 32;
static_assert(tileRows <= Contraction::manyVectors, "there are vectors for a whole tile");
static_assert(tileNumbers <= VectorRounder::alignment, "rounded vectors are read in whole tiles");
/// Registers of rows of W that are multiplied together, and registers of vectors.
constexpr int64_t groupsTogether = 2, mostTogether = 2;
/// The largest panel, in bytes and in elements of a row: 32 vectors at a time read all of it from
/// the second-level cache. Shorter rows and smaller panels were slower by up to a third (Sapphire
/// Rapids), larger ones faster by a twentieth, and this memory is on the thread's stack.
constexpr int64_t panelBytes = 384 << 10, maxLength = 4096, maxSplitLength = 1024;

class TileEmitter : RoundedPanel {
public:
  TileEmitter(OpBuilder &b, Location loc, const RoundedOperands &operands)
      : RoundedPanel(b, loc, operands, tileRows,
                     {panelBytes, operands.isSplit ? maxSplitLength : maxLength, groupsTogether}),
        out(cast<MemRefType>(operands.y.getType()).getDimSize(1)) {}

  void emit(Value begin, Value end);

private:
  /// The sums of some vectors with some rows of W.
  struct Sums {
    Value vector, newVector, endVector; ///< the first vector; those that are stored
    int64_t vectors;                    ///< registers of vectors
    Value row, endRow; ///< the first row of W, and the end of those that are stored
    Value isPart;      ///< whether some are not stored
  };
  void compute(const Part &part);
  void compute(const Part &part, Value group, Value vector, int64_t vectors);
  void forStored(const Sums &sums, llvm::function_ref<void(ValueRange, ValueRange, Value)> body);
  Values begin(const Part &part, const Sums &sums, ValueRange at);
  Values multiply(const Part &part, Value group, const Sums &sums, Values start);

  /// The tiles of one part of x or of W, which stay in registers while products share them.
  struct Loaded {
    void load(int64_t wanted, int64_t count, llvm::function_ref<Value(int64_t, int64_t)> tile) {
      if (std::exchange(part, wanted) == wanted)
        return;
      tiles.clear();
      for (int64_t i = 0; i < count; ++i)
        tiles.push_back(tile(wanted, i));
    }
    int64_t part = -1;
    Values tiles;
  };
  int64_t xParts() { return given.isSplit ? split::parts : 1; }
  SmallVector<split::Product> products() {
    return given.isSplit ? split::products(planes) : SmallVector<split::Product>{{0, 0}};
  }

  amx::TileType factors() { return amx::TileType::get({tileRows, tileNumbers}, b.getBF16Type()); }
  amx::TileType sumsType() { return amx::TileType::get({tileRows, tileRows}, b.getF32Type()); }
  VectorType ofRow() { return VectorType::get({tileRows}, b.getF32Type()); }

  int64_t out;
  Value apart, apartAddress; ///< memory for sums of which some are not stored
};

void TileEmitter::emit(Value begin, Value end) {
  constexpr int64_t rows = mostTogether * tileRows, columns = groupsTogether * tileRows;
  apartAddress = allocate(b.getF32Type(), rows * columns);
  apart = memrefAt(b, loc, apartAddress, MemRefType::get({rows, columns}, b.getF32Type()), {});
  forEachPart(begin, end, [&](const Part &part) { compute(part); });
}

void TileEmitter::compute(const Part &part) {
  constexpr int64_t most = mostTogether * tileRows;
  Value groups = groupsOf(part), whole = multiples(given.rows, most);
  auto all = [&](Value vector, int64_t vectors) {
    forRange(index(0), groups, groupsTogether,
             [&](Value group) { compute(part, group, vector, vectors); });
  };
  forRange(index(0), whole, most, [&](Value vector) { all(vector, mostTogether); });
  forRange(whole, given.rows, tileRows, [&](Value vector) { all(vector, 1); });
}

/// y[vectors, rows of the groups] += their products along the panel.
void TileEmitter::compute(const Part &part, Value group, Value newVector, int64_t vectors) {
  Sums sums;
  sums.vectors = vectors;
  sums.newVector = newVector;
  sums.endVector = least(add(newVector, index(vectors * tileRows)), given.rows);
  sums.vector = sub(sums.endVector, index(vectors * tileRows));
  sums.row = rowOf(part, group);
  sums.endRow = least(add(sums.row, index(groupsTogether * tileRows)), part.to);
  sums.isPart =
      arith::OrIOp::create(b, loc, isLess(sums.vector, newVector),
                           isLess(sums.endRow, add(sums.row, index(groupsTogether * tileRows))));

  // Tiles are read from and written to y, or memory apart from it.
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  Value first = add(arith::MulIOp::create(b, loc, sums.vector, index(out)), sums.row);
  Value inY = LLVM::GEPOp::create(b, loc, ptr, b.getF32Type(), addressOf(b, loc, given.y),
                                  ArrayRef<LLVM::GEPArg>{toI64(b, loc, first)});
  Value address = arith::SelectOp::create(b, loc, sums.isPart, apartAddress, inY);
  Value stride =
      arith::SelectOp::create(b, loc, sums.isPart, index(groupsTogether * tileRows), index(out));
  Value numbers =
      memrefAt(b, loc, address, MemRefType::get({ShapedType::kDynamic}, b.getF32Type()), stride);
  SmallVector<Value> at{numbers, stride};

  Values done = multiply(part, group, sums, begin(part, sums, at));
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t g = 0; g < groupsTogether; ++g)
      amx::TileStoreOp::create(b, loc, numbers,
                               add(times(stride, v * tileRows), index(g * tileRows)),
                               done[v * groupsTogether + g], stride);
  ifThen(sums.isPart, [&] {
    forStored(sums, [&](ValueRange inY, ValueRange here, Value mask) {
      store(vector::LoadOp::create(b, loc, ofRow(), apart, here), given.y, inY, mask);
    });
  });
}

/// Calls body(place in y, place in the memory apart, mask) with each row of sums that is stored.
void TileEmitter::forStored(const Sums &sums,
                            llvm::function_ref<void(ValueRange, ValueRange, Value)> body) {
  forRange(sums.newVector, sums.endVector, 1, [&](Value vector) {
    for (int64_t g = 0; g < groupsTogether; ++g) {
      Value row = least(add(sums.row, index(g * tileRows)), sums.endRow);
      body({vector, row}, {sub(vector, sums.vector), index(g * tileRows)},
           mask(tileRows, sub(sums.endRow, row)));
    }
  });
}

/// The sums so far: zero, or those of the panels before.
LoopBuilder::Values TileEmitter::begin(const Part &part, const Sums &sums, ValueRange at) {
  int64_t count = sums.vectors * groupsTogether;
  auto start = scf::IfOp::create(b, loc, SmallVector<Type>(count, sumsType()), part.isFirst,
                                 /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(start.thenBlock());
  Values zero, soFar;
  for (int64_t i = 0; i < count; ++i)
    zero.push_back(amx::TileZeroOp::create(b, loc, sumsType()));
  scf::YieldOp::create(b, loc, zero);

  b.setInsertionPointToStart(start.elseBlock());
  ifThen(sums.isPart, [&] {
    forStored(sums, [&](ValueRange inY, ValueRange here, Value mask) {
      store(load(ofRow(), given.y, inY, mask), apart, here, {});
    });
  });
  for (int64_t v = 0; v < sums.vectors; ++v)
    for (int64_t g = 0; g < groupsTogether; ++g)
      soFar.push_back(amx::TileLoadOp::create(
          b, loc, sumsType(), at[0], add(times(at[1], v * tileRows), index(g * tileRows)), at[1]));
  scf::YieldOp::create(b, loc, soFar);
  return Values(start.getResults());
}

LoopBuilder::Values TileEmitter::multiply(const Part &part, Value group, const Sums &sums,
                                          Values start) {
  const int64_t apart = VectorRounder::stride(in), stride = xParts() * apart;
  Value from = add(times(sums.vector, stride), part.column);
  Value address = LLVM::GEPOp::create(b, loc, given.x.getType(), b.getBF16Type(), given.x,
                                      ArrayRef<LLVM::GEPArg>{toI64(b, loc, from)});
  Value x = memrefAt(b, loc, address,
                     MemRefType::get({sums.vectors * tileRows, stride}, b.getBF16Type()), {});
  Value w = memrefAt(
      b, loc, memory,
      MemRefType::get({planes * panelGroups, length / 2, tileNumbers}, b.getBF16Type()), {});
  auto body = [&](ValueRange before, Value pair) {
    auto ofX = [&](int64_t taken, int64_t i) -> Value {
      return amx::TileLoadOp::create(
          b, loc, factors(), x,
          ValueRange{index(i * tileRows), add(times(pair, 2), index(taken * apart))});
    };
    auto ofW = [&](int64_t plane, int64_t i) -> Value {
      return amx::TileLoadOp::create(
          b, loc, factors(), w,
          ValueRange{add(group, index(plane * panelGroups + i)), pair, index(0)});
    };
    Loaded xs, ws;
    Values next(before);
    for (split::Product product : products()) {
      xs.load(product.x, sums.vectors, ofX);
      ws.load(product.w, groupsTogether, ofW);
      for (auto [i, sum] : llvm::enumerate(next))
        sum = amx::TileMulFOp::create(b, loc, sumsType(), xs.tiles[i / groupsTogether],
                                      ws.tiles[i % groupsTogether], sum);
    }
    return next;
  };
  return carried(index(0), pairsOf(part), tileRows, start, body);
}

} // namespace

void ctxc::emitTiles(OpBuilder &b, Location loc, const RoundedOperands &operands, Value begin,
                     Value end) {
  TileEmitter(b, loc, operands).emit(begin, end);
}
