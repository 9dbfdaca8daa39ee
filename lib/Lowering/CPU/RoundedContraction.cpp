#include "lib/Lowering/CPU/RoundedContraction.h"
#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/CPU/RoundedPanel.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// A panel must fit into half of the second-level cache: a thread may have no more than that.
constexpr int64_t panelBytes = 384 << 10;
/// The largest number of elements of one row in a panel.
constexpr int64_t maxLength = 4096;
/// Groups of rows in a tile.
constexpr int64_t tileGroups = 2;
/// Vectors in a tile: the largest number whose sums leave registers for the factors. The vectors
/// that remain go in smaller tiles.
constexpr int64_t roundedTileVectors[] = {12, 4, 1};

class Emitter : RoundedPanel {
public:
  Emitter(OpBuilder &b, Location loc, const RoundedOperands &operands, int64_t lanes)
      : RoundedPanel(b, loc, operands, lanes, {panelBytes, maxLength, tileGroups}) {}

  void emit(Value begin, Value end) {
    forEachPart(begin, end, [&](const Part &part) { compute(part); });
  }

private:
  VectorType sums() { return VectorType::get({lanes}, b.getF32Type()); }
  void compute(const Part &part);
  void tile(const Part &part, Value group, int64_t groups, Value vector, int64_t vectors);
};

void Emitter::compute(const Part &part) {
  Value groups = groupsOf(part), even = multiples(groups, tileGroups);
  Value done = index(0);
  for (int64_t vectors : roundedTileVectors) {
    Value last = add(done, multiples(sub(given.rows, done), vectors));
    forRange(done, last, vectors, [&](Value vector) {
      forRange(index(0), even, tileGroups,
               [&](Value group) { tile(part, group, tileGroups, vector, vectors); });
      forRange(even, groups, 1, [&](Value group) { tile(part, group, 1, vector, vectors); });
    });
    done = last;
  }
}

/// y[vector…, rows of the groups] += their products along the panel.
void Emitter::tile(const Part &part, Value group, int64_t groups, Value vector, int64_t vectors) {
  SmallVector<Value> outputs, stored; // of each group: first row, mask of its rows
  for (int64_t g = 0; g < groups; ++g) {
    outputs.push_back(rowOf(part, add(group, index(g))));
    stored.push_back(presentRows(part, outputs.back()));
  }
  SmallVector<Type> types(groups * vectors, sums());
  auto start = scf::IfOp::create(b, loc, types, part.isFirst, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(start.thenBlock());
    scf::YieldOp::create(b, loc, SmallVector<Value>(types.size(), zeros(sums())));
    b.setInsertionPointToStart(start.elseBlock());
    SmallVector<Value> soFar;
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t g = 0; g < groups; ++g)
        soFar.push_back(load(sums(), given.y, {add(vector, index(v)), outputs[g]}, stored[g]));
    scf::YieldOp::create(b, loc, soFar);
  }
  Value panel = memrefAt(b, loc, memory,
                         MemRefType::get({panelGroups, length / 2, lanes}, b.getI32Type()), {});
  // Addresses the pairs of all vectors of the tile from one base address, with constant distances.
  int64_t stride = VectorRounder::stride(in) / 2;
  Value begin = toI64(b, loc, add(times(vector, stride), over(part.column, 2)));
  Value address = LLVM::GEPOp::create(b, loc, given.x.getType(), b.getI32Type(), given.x,
                                      ArrayRef<LLVM::GEPArg>{begin});
  Value x = memrefAt(b, loc, address, MemRefType::get({vectors, stride}, b.getI32Type()), {});
  auto loop = scf::ForOp::create(b, loc, index(0), pairsOf(part), index(1), start.getResults());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value pair = loop.getInductionVar();
    SmallVector<Value> ws, next;
    for (int64_t g = 0; g < groups; ++g)
      ws.push_back(vector::BitCastOp::create(
          b, loc, numbers(),
          vector::LoadOp::create(b, loc, pairs(), panel,
                                 ValueRange{add(group, index(g)), pair, index(0)})));
    // Four lanes are NEON's; on x86-64 the instruction comes with AVX-512.
    StringAttr name =
        b.getStringAttr(lanes == 4 ? Twine("llvm.aarch64.neon.bfdot.v4f32.v8bf16")
                                   : "llvm.x86.avx512bf16.dpbf16ps." + Twine(lanes * 32));
    for (int64_t v = 0; v < vectors; ++v) {
      Value one = memref::LoadOp::create(b, loc, x, ValueRange{index(v), pair});
      Value wide = vector::BitCastOp::create(b, loc, numbers(),
                                             vector::BroadcastOp::create(b, loc, pairs(), one));
      for (Value w : ws)
        next.push_back(
            LLVM::CallIntrinsicOp::create(b, loc, sums(), name,
                                          ValueRange{loop.getRegionIterArg(next.size()), w, wide})
                .getResults());
    }
    scf::YieldOp::create(b, loc, next);
  }
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t g = 0; g < groups; ++g)
      store(loop.getResult(v * groups + g), given.y, {add(vector, index(v)), outputs[g]},
            stored[g]);
}

} // namespace

void ctxc::emitRounded(OpBuilder &b, Location loc, const RoundedOperands &operands, Value begin,
                       Value end, int64_t lanes) {
  Emitter(b, loc, operands, lanes).emit(begin, end);
}
