// Attention becomes calls of the caller's parallel-for with functions of two kinds. With many rows,
// a unit of work is a block of rows of one group of heads, which goes over all slots; in kernels
// that round or split a prompt's numbers there is another such function (RoundedAttention.h). With
// a single row (decoding), a unit is a tile of slots for some groups; the tiles are merged
// afterwards. Both merge the same tiles in the same order.
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CPU/AttentionEmitter.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Order.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_LOWERATTENTION
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

/// The queries that share a tile of slots while it is in the first-level cache.
constexpr int64_t queriesOfTile = 16;
/// The queries of a block, which share a tile of slots while it is in the second-level cache.
constexpr int64_t queriesOfBlock = 128;
/// The queries of a block that is computed in registers of tiles: so many that its keys and values
/// are converted seldom.
constexpr int64_t queriesOfRoundedBlock = 256;
/// How many slots are multiplied with the weights of a block before the next vectors of a value.
constexpr int64_t slotsOfBlock = 64;
/// For a single row, the groups that a unit of work has where they lie side by side: so many that
/// the keys of a slot are at least this many numbers.
constexpr int64_t numbersOfUnit = 512;
/// With fewer products, a second thread costs more time than it saves.
constexpr int64_t sharedProducts = 1 << 15;

} // namespace

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

AttentionEmitter::AttentionEmitter(kernel::AttentionOp op, const CpuTarget &target, int64_t number)
    : RoundedAttention(OpBuilder(op), op, target), kernel(op->getParentOfType<func::FuncOp>()),
      name((kernel.getName() + "_attention_" + Twine(number)).str()) {
  heads = std::min(repeat, queriesOfTile);
  parts = llvm::divideCeil(repeat, heads);
  unitGroups = isInLine ? 1 : std::min<int64_t>(llvm::divideCeil(numbersOfUnit, width), groups);
}

AttentionEmitter::Function AttentionEmitter::beginFunction(StringRef suffix) {
  func::FuncOp function = beginPart(b, loc, kernel, name + suffix);
  Values loaded = loadCrossing(b, loc, function.getArgument(0), crossing());
  IRMapping inside;
  inside.map(op->getOperands(), ArrayRef(loaded).drop_back(tiles.size()));
  auto here = [&](Value operand) { return operand ? inside.lookup(operand) : Value(); };
  in = {here(op.getQuery()),     here(op.getKeys()),  here(op.getValues()),
        here(op.getWindow()),    here(op.getSinks()), here(op.getOwnScores()),
        here(op.getOwnValues()), here(op.getMixed()), llvm::map_to_vector(op.getOthers(), here)};
  llvm::copy(ArrayRef(loaded).take_back(tiles.size()), tiles.begin());
  rows = memref::DimOp::create(b, loc, in.query, 0);
  slots = memref::DimOp::create(b, loc, in.keys, 0);
  return {function, toIndex(b, loc, function.getArgument(1)),
          toIndex(b, loc, function.getArgument(2))};
}

/// Memory of float32 on the function's stack.
Value AttentionEmitter::numbers(ArrayRef<int64_t> shape) { return scratch(shape, b.getF32Type()); }

Value AttentionEmitter::firstSeen(Value row) {
  if (!in.window)
    return index(0);
  Value limit = arith::IndexCastOp::create(
      b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, in.window, ValueRange{index(0)}));
  Value seen = add(sub(slots, rows), add(row, index(1)));
  Value first = arith::MaxSIOp::create(b, loc, sub(seen, limit), index(0));
  Value isUnlimited = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, limit, index(0));
  return arith::SelectOp::create(b, loc, isUnlimited, index(0), first);
}

AttentionEmitter::Shape AttentionEmitter::shapeOf(bool isRounded) {
  Shape shape{isRounded, isRounded ? roundedQueries : queriesOfTile, 1, 1};
  shape.tileRows = std::max<int64_t>(shape.queries / heads, 1);
  int64_t ofBlock = isRounded ? queriesOfRoundedBlock : queriesOfBlock;
  shape.tiles = std::max<int64_t>(ofBlock / heads / shape.tileRows, 1);
  return shape;
}

/// How many units of work there are.
Value AttentionEmitter::unitsOf(const Shape &shape) {
  Value blocks = over(add(rows, index(shape.blockRows() - 1)), shape.blockRows());
  return times(blocks, groups * parts);
}

func::FuncOp AttentionEmitter::writeBlocks(StringRef suffix, const Shape &shape) {
  auto [function, begin, end] = beginFunction(suffix);
  int64_t queries = shape.queries, all = shape.blockRows() * heads;
  Memory memory{numbers({queries, slotsOfTile}),
                {},
                {},
                {numbers({queries}), numbers({queries}),
                 numbers({queries, shape.isRounded ? roundedOut() : out}), index(0)},
                {numbers({all}), numbers({all}), {}, {}, {}, {}}};
  if (shape.isRounded)
    allocateRounded(shape.tiles);
  else
    memory.values = numbers({slotsOfTile, copyStride()});
  if (!shape.isRounded && copiesKeys())
    memory.keys = numbers({slotsOfTile / rowLanes, width, rowLanes});
  forRange(begin, end, 1, [&](Value unit) { writeBlock(shape, unit, memory); });
  func::ReturnOp::create(b, loc);
  return function;
}

/// All slots for the rows of one block and the heads of one group, or some of these heads.
void AttentionEmitter::writeBlock(const Shape &shape, Value unit, const Memory &memory) {
  Value block = over(unit, groups * parts);
  Value rest = sub(unit, times(block, groups * parts));
  Value group = over(rest, parts), head = times(sub(rest, times(group, parts)), heads);
  if (op.getCausal()) {
    // Later rows take longer. The blocks are counted alternately from both ends (first, last,
    // second, last but one, …), so that ranges of equal length take equal time.
    Value last = over(sub(rows, index(1)), shape.blockRows()), half = over(block, 2);
    Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, block, times(half, 2));
    block = arith::SelectOp::create(b, loc, isOdd, sub(last, half), half);
  }
  Value first = times(block, shape.blockRows());
  Value end = least(add(first, index(shape.blockRows())), rows);
  Value some = repeat % heads ? least(index(heads), sub(index(repeat), head)) : index(heads);
  auto placed = [&](Value at, Value row, Value ofGroup, Value ofHead) {
    return Running{memory.running.largest, memory.running.total, at, row, ofGroup, ofHead};
  };
  auto queriesOf = [&](Value row, Value rowEnd) {
    return Queries{row, sub(rowEnd, row), group, index(1), head, some};
  };
  auto forTiles = [&](llvm::function_ref<void(Value, Value)> body) {
    forRange(first, end, shape.tileRows,
             [&](Value row) { body(row, least(add(row, index(shape.tileRows)), end)); });
  };
  auto tileOf = [&](Value row) { return over(sub(row, first), shape.tileRows); };
  Queries all = queriesOf(first, end);
  forEach(all, [&](Value g, Value query, Value row, Value h) { start(placed(query, row, g, h)); });
  if (shape.isRounded)
    forTiles([&](Value row, Value rowEnd) { roundQueries(queriesOf(row, rowEnd), tileOf(row)); });
  forRange(multiples(firstSeen(first), slotsOfTile), seenBefore(end), slotsOfTile, [&](Value from) {
    Value to = add(from, index(slotsOfTile)), present = least(to, seenBefore(end));
    Copies copies{memory.keys, memory.values, from};
    if (shape.isRounded)
      roundSlots(group, from, present);
    if (copies.keys)
      copyKeys(group, present, copies);
    if (copies.values)
      copyValues(group, present, copies);
    forTiles([&](Value row, Value rowEnd) {
      Value seenEnd = least(to, seenBefore(rowEnd));
      Value seesSome =
          arith::AndIOp::create(b, loc, isLess(from, seenEnd), isLess(firstSeen(row), to));
      ifThen(seesSome, [&] {
        Queries queries = queriesOf(row, rowEnd);
        if (shape.isRounded)
          computeRounded(queries, tileOf(row), from, seenEnd, memory.scores, memory.tile);
        else
          computeTile(queries, from, seenEnd, memory.scores, memory.tile, slotsOfBlock, copies);
        Value before = arith::MulIOp::create(b, loc, sub(row, first), some);
        forEach(queries, [&](Value g, Value query, Value r, Value h) {
          merge(placed(add(before, query), r, g, h), memory.tile, query);
        });
      });
    });
  });
  forEach(all, [&](Value g, Value query, Value row, Value h) { finish(placed(query, row, g, h)); });
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void AttentionEmitter::lower() {
  b.setInsertionPoint(op);
  auto query = op.getQuery();
  auto count = [&](Value memref) -> Value { return memref::DimOp::create(b, loc, memref, 0); };
  Value allRows = count(query), allSlots = count(op.getKeys());
  Value allTiles = over(add(allSlots, index(slotsOfTile - 1)), slotsOfTile);
  Value results = times(allTiles, groups * repeat);
  auto ofTiles = [&](ArrayRef<int64_t> shape) -> Value {
    return memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getF32Type()),
                                   ValueRange{results});
  };
  tiles = {ofTiles({ShapedType::kDynamic}), ofTiles({ShapedType::kDynamic}),
           ofTiles({ShapedType::kDynamic, out})};
  Value frame = storeCrossing(b, loc, kernel, crossing());

  OpBuilder atOp = b;
  Values given = tiles;
  auto written = [&](auto write) {
    tiles = given;
    return (this->*write)();
  };
  func::FuncOp ofMerge = written(&AttentionEmitter::writeMerge),
               ofOne = written(&AttentionEmitter::writeOne),
               ofRows = written(&AttentionEmitter::writeRows), ofMany;
  if (isRounded())
    ofMany = written(&AttentionEmitter::writeRounded);

  b = atOp;
  rows = allRows;
  slots = allSlots;
  in.window = op.getWindow();
  Value zero = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(0));
  Value products = arith::MulIOp::create(b, loc, allRows, times(allSlots, groups * repeat * width));
  auto call = [&](func::FuncOp function, Value units, Value products) {
    Value n = toI64(b, loc, units);
    Value isShared = isLess(index(sharedProducts), products);
    auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    callParallelFor(b, loc, kernel, function, n, frame);
    b.setInsertionPointToStart(branch.elseBlock());
    func::CallOp::create(b, loc, function, ValueRange{frame, zero, n});
  };
  Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, allRows, index(1));
  auto branch = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  Value seen = tilesOfOne();
  call(ofOne, times(seen, llvm::divideCeil(groups, unitGroups)), products);
  call(ofMerge, index(groups * repeat), times(seen, groups * repeat * out));
  b.setInsertionPointToStart(branch.elseBlock());
  if (isRounded()) {
    Value many = isLess(index(Contraction::manyVectors - 1), allRows);
    auto ofRounded = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
    b.setInsertionPointToStart(ofRounded.thenBlock());
    call(ofMany, unitsOf(shapeOf(true)), products);
    b.setInsertionPointToStart(ofRounded.elseBlock());
  }
  call(ofRows, unitsOf(shapeOf(false)), products);
  op.erase();
}

namespace {

/// Replaces an operand whose last dimension does not lie in line by a copy whose does.
void putInLine(OpOperand &operand) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getRank() == 0 ||
      (succeeded(type.getStridesAndOffset(strides, offset)) && strides.back() == 1))
    return;
  OpBuilder b(operand.getOwner());
  Location loc = operand.getOwner()->getLoc();
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(memref::DimOp::create(b, loc, operand.get(), i));
  Value copy = memref::AllocOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType()), sizes);
  linalg::makeMemRefCopyOp(b, loc, operand.get(), copy);
  operand.set(copy);
}

struct LowerAttention : ctxc::impl::LowerAttentionBase<LowerAttention> {
  using Base::Base;
  void runOnOperation() override {
    CpuTarget target;
    target.lanes = lanes;
    target.registers = registers;
    target.tiles = tiles;
    target.bytesAhead = bytesAhead;
    target.asksInLine = asksInLine;
    if (failed(expectBuffers(getOperation(), getArgument())))
      return signalPassFailure();
    SmallVector<kernel::AttentionOp> ops;
    getOperation().walk([&](kernel::AttentionOp op) { ops.push_back(op); });
    for (auto [i, op] : llvm::enumerate(ops)) {
      if (!hasVectorForm(op.getScore().front())) {
        op.emitError("its scores need an op that has no form over vectors");
        return signalPassFailure();
      }
      for (OpOperand &operand : op->getOpOperands())
        if (&operand != &op.getMixedMutable())
          putInLine(operand);
      AttentionEmitter(op, target, i).lower();
    }
  }
};

} // namespace
