// Loops over the rows of a call, shared out to the caller's threads.
//
// What is no contraction is done row by row: an op whose first loop runs over the rows, or a loop
// over them that calls a support function. Such ops that follow each other become one loop over
// the rows where each reads, of what another writes, its own row alone; so a row's values are
// still in the caches closest to the core when the next op takes them. The loop becomes a function
// of a range of rows; from `sharedFrom` rows on it is handed to the caller's parallel-for. A row's
// numbers depend on neither: the order within a row stays as it is. A buffer that such a loop alone
// knows (attention's scores) has one row's memory for all of a range.
#include "lib/Lowering/AttentionLoops.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Passes.h"
#include "lib/Lowering/RowLoop.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// With fewer rows a second thread costs more than it brings.
constexpr int64_t sharedFrom = 16;

//===----------------------------------------------------------------------===//
// Which ops make one loop
//===----------------------------------------------------------------------===//

/// What one op does to memory, as far as rows are concerned.
struct RowOp {
  Operation *op = nullptr;
  Value count; ///< of rows
  bool isKnown = true;
  struct Access {
    Value root;
    bool isOwnRow, isWrite;
  };
  SmallVector<Access> accesses;
};

/// An op that goes over rows: none where it is no such op.
std::optional<RowOp> rowOp(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop->hasAttr(kRowLoopAttr))
    return RowOp{&op, loop.getUpperBound(), /*isKnown=*/false, {}};
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !linalgOp.hasPureBufferSemantics() || linalgOp.getNumLoops() == 0 ||
      linalgOp.getIteratorTypesArray().front() != utils::IteratorType::parallel)
    return std::nullopt;
  RowOp result{&op, {}, true, {}};
  for (OpOperand &operand : op.getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
    bool byRow =
        map.getNumResults() > 0 && map.getResult(0) == getAffineDimExpr(0, op.getContext());
    bool isWrite = linalgOp.isDpsInit(&operand);
    if (isWrite && (!byRow || !type.isDynamicDim(0)))
      return std::nullopt;
    if (isWrite)
      result.count = rowsOf(operand.get());
    Origin origin = originOf(operand.get());
    result.isKnown &= bool(origin.root);
    result.accesses.push_back({origin.root, byRow && origin.sameRows, isWrite});
  }
  if (!result.count)
    return std::nullopt;
  op.walk([&](memref::LoadOp load) { // in its body, at any place
    Origin origin = originOf(load.getMemRef());
    result.isKnown &= bool(origin.root);
    result.accesses.push_back({origin.root, false, false});
  });
  return result;
}

/// Whether `next` may follow `group` in one loop over the rows.
bool mayJoin(ArrayRef<RowOp> group, const RowOp &next) {
  if (!next.isKnown || !group.front().isKnown || next.count != group.front().count)
    return false;
  auto conflicts = [](const RowOp &a, const RowOp &b) {
    for (const RowOp::Access &x : a.accesses)
      for (const RowOp::Access &y : b.accesses)
        if (x.root == y.root && (x.isWrite || y.isWrite) && !(x.isOwnRow && y.isOwnRow))
          return true;
    return false;
  };
  return llvm::none_of(group, [&](const RowOp &op) { return conflicts(op, next); });
}

//===----------------------------------------------------------------------===//
// Buffers that a loop has to itself
//===----------------------------------------------------------------------===//

/// An index as it was before loops were made of linalg, which gives each an affine.apply.
Value withoutIdentity(Value index) {
  auto apply = index.getDefiningOp<affine::AffineApplyOp>();
  return apply && apply.getAffineMap().isIdentity() ? apply.getOperand(0) : index;
}

/// The rows' indices where the loop reads and writes `buffer`, if nothing else does and they are
/// the loop's own row throughout.
std::optional<SmallVector<OpOperand *>> ownRows(memref::AllocOp buffer, scf::ForOp loop) {
  SmallVector<OpOperand *> rows;
  SmallVector<Value> views{buffer};
  while (!views.empty())
    for (OpOperand &use : views.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<memref::DimOp>(user))
        continue;
      if (isa<memref::SubViewOp, memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
              user) &&
          originOf(user->getResult(0)).sameRows) {
        views.push_back(user->getResult(0));
        continue;
      }
      if (!isa<memref::LoadOp, memref::StoreOp, vector::LoadOp, vector::StoreOp,
               vector::MaskedLoadOp, vector::MaskedStoreOp>(user))
        return std::nullopt;
      OpOperand &row = user->getOpOperand(use.getOperandNumber() + 1); // behind the memref
      if (withoutIdentity(row.get()) != loop.getInductionVar())
        return std::nullopt;
      rows.push_back(&row);
    }
  return rows;
}

//===----------------------------------------------------------------------===//
// The loop as a function
//===----------------------------------------------------------------------===//

/// The type in which a value crosses to another function; null where it cannot.
Type crossingType(Type type) {
  MLIRContext *context = type.getContext();
  Type i64 = IntegerType::get(context, 64), ptr = LLVM::LLVMPointerType::get(context);
  if (type.isIndex())
    return i64;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return LLVM::isCompatibleType(type) ? type : Type();
  SmallVector<Type> fields{ptr, ptr, i64};
  if (memref.getRank() > 0)
    fields.append(2, LLVM::LLVMArrayType::get(i64, memref.getRank()));
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

Value toCrossing(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isIndex())
    return toI64(b, loc, value);
  Type type = crossingType(value.getType());
  return type == value.getType()
             ? value
             : UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

Value fromCrossing(OpBuilder &b, Location loc, Value crossed, Type type) {
  if (type.isIndex())
    return toIndex(b, loc, crossed);
  return type == crossed.getType()
             ? crossed
             : UnrealizedConversionCastOp::create(b, loc, type, crossed).getResult(0);
}

class RowSharer {
public:
  RowSharer(func::FuncOp kernel, const CpuTarget &target)
      : kernel(kernel), target(target), b(kernel.getContext()), rewriter(kernel.getContext()) {}

  LogicalResult run();

private:
  LogicalResult finish(SmallVectorImpl<RowOp> &group);
  scf::ForOp merge(ArrayRef<RowOp> group);
  LogicalResult outline(scf::ForOp loop, bool isCausal);
  func::FuncOp makeRowFunction(scf::ForOp loop, ArrayRef<Value> captured, ArrayRef<OpOperand *> own,
                               LLVM::LLVMStructType frame);
  func::FuncOp makeRangeFunction(Location loc, func::FuncOp row, LLVM::LLVMStructType frame,
                                 std::optional<int32_t> countField);
  void callFunction(scf::ForOp loop, func::FuncOp function, Value frame);

  func::FuncOp kernel;
  const CpuTarget &target;
  OpBuilder b;
  IRRewriter rewriter;
  int64_t count = 0;
};

LogicalResult RowSharer::run() {
  SmallVector<RowOp> group;
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
    std::optional<RowOp> next = rowOp(op);
    if (next && !group.empty() && mayJoin(group, *next)) {
      group.push_back(std::move(*next));
      continue;
    }
    // What only makes a value stands where it is, before the loop that the group becomes.
    if (!next && (isa<memref::AllocOp>(op) || isMemoryEffectFree(&op)) &&
        !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(finish(group)))
      return failure();
    if (next)
      group.push_back(std::move(*next));
  }
  return success();
}

LogicalResult RowSharer::finish(SmallVectorImpl<RowOp> &group) {
  if (group.empty())
    return success();
  bool isCausal =
      llvm::any_of(group, [](const RowOp &member) { return member.op->hasAttr(kCausalAttr); });
  scf::ForOp loop = merge(group);
  group.clear();
  return loop ? outline(loop, isCausal) : failure();
}

/// One loop over the rows, in the place of the last op of the group.
scf::ForOp RowSharer::merge(ArrayRef<RowOp> group) {
  if (auto loop = dyn_cast<scf::ForOp>(group.front().op))
    return loop;
  scf::ForOp merged;
  Operation *last = group.back().op;
  for (const RowOp &member : group) {
    rewriter.setInsertionPoint(last);
    auto linalgOp = cast<linalg::LinalgOp>(member.op);
    FailureOr<scf::ForOp> made = linalgToLoops(rewriter, linalgOp, target);
    if (failed(made))
      return nullptr;
    scf::ForOp loop = *made;
    if (!merged) {
      merged = loop;
    } else {
      merged->moveBefore(loop);
      Block *body = merged.getBody();
      rewriter.eraseOp(loop.getBody()->getTerminator());
      rewriter.inlineBlockBefore(loop.getBody(), body->getTerminator(), merged.getInductionVar());
      // What the second loop needs stands after the first until now.
      merged->moveAfter(loop);
      rewriter.eraseOp(loop);
    }
    if (member.op != last)
      rewriter.eraseOp(member.op);
  }
  rewriter.eraseOp(last);
  return merged;
}

/// In a causal loop a row takes the longer the later it is.
LogicalResult RowSharer::outline(scf::ForOp loop, bool isCausal) {
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getRegion(), outside);
  llvm::SetVector<Operation *> buffers;
  for (Value value : outside)
    if (isa<MemRefType>(value.getType()))
      if (Value root = originOf(value).root)
        if (auto buffer = root.getDefiningOp<memref::AllocOp>())
          buffers.insert(buffer);
  SmallVector<OpOperand *> own;
  for (Operation *buffer : buffers)
    if (auto rows = ownRows(cast<memref::AllocOp>(buffer), loop))
      own.append(*rows);
  SmallVector<Value> captured;
  SmallVector<Type> types;
  for (Value value : outside) {
    if (matchPattern(value, m_Constant()))
      continue;
    Type type = crossingType(value.getType());
    if (!type) // a function's address and the like: the loop stays where it is
      return success();
    captured.push_back(value);
    types.push_back(type);
  }
  std::optional<int32_t> countField;
  if (isCausal) {
    countField = captured.size();
    captured.push_back(loop.getUpperBound());
    types.push_back(b.getI64Type());
  }
  auto frameType = LLVM::LLVMStructType::getLiteral(kernel.getContext(), types);
  func::FuncOp row = makeRowFunction(loop, captured, own, frameType);
  func::FuncOp function = makeRangeFunction(loop.getLoc(), row, frameType, countField);

  Location loc = loop.getLoc();
  b.setInsertionPoint(loop);
  SmallVector<Value> crossed;
  for (Value value : captured)
    crossed.push_back(toCrossing(b, loc, value));
  Value frame = storeFrame(b, loc, kernel, frameType, crossed);
  callFunction(loop, function, frame);
  loop.erase();
  return success();
}

/// The loop's body as a function of the frame, a row, and the row in whose place buffers lie that
/// are the loop's `own`. It stays one: taken into a loop, vectors over several rows would add up
/// the sums of the rows that are left over in another order.
func::FuncOp RowSharer::makeRowFunction(scf::ForOp loop, ArrayRef<Value> captured,
                                        ArrayRef<OpOperand *> own, LLVM::LLVMStructType frame) {
  Location loc = loop.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointAfter(kernel);
  auto function = func::FuncOp::create(b, loc, (kernel.getName() + "_row_" + Twine(count)).str(),
                                       b.getFunctionType({ptr, i64, i64}, {}));
  function.setPrivate();
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping inside;
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value field = LLVM::GEPOp::create(b, loc, ptr, frame, entry->getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    Value crossed = LLVM::LoadOp::create(b, loc, frame.getBody()[i], field);
    inside.map(value, fromCrossing(b, loc, crossed, value.getType()));
  }
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getRegion(), outside);
  for (Value value : outside)
    if (!inside.contains(value))
      inside.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  inside.map(loop.getInductionVar(), toIndex(b, loc, entry->getArgument(1)));
  Value place = toIndex(b, loc, entry->getArgument(2));
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, inside);
  for (OpOperand *index : own)
    inside.lookup(index->getOwner())->setOperand(index->getOperandNumber(), place);
  func::ReturnOp::create(b, loc);
  return function;
}

/// What threads share out: a range of rows. All of them have the loop's own buffers in one place,
/// the first's, which stays in the caches, and of the others' no memory is ever touched. The
/// frame's `countField` says how many rows there are, where they take unequally long: then they are
/// counted from both ends in turn (the first, the last, the second, the last but one), so that
/// equal ranges take equally long where later rows take longer.
func::FuncOp RowSharer::makeRangeFunction(Location loc, func::FuncOp row,
                                          LLVM::LLVMStructType frame,
                                          std::optional<int32_t> countField) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointAfter(row);
  auto function = func::FuncOp::create(b, loc, (kernel.getName() + "_rows_" + Twine(count++)).str(),
                                       b.getFunctionType({ptr, i64, i64}, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto loop = scf::ForOp::create(b, loc, toIndex(b, loc, entry->getArgument(1)),
                                 toIndex(b, loc, entry->getArgument(2)),
                                 arith::ConstantIndexOp::create(b, loc, 1));
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(loop.getBody());
  Value index = toI64(b, loc, loop.getInductionVar());
  if (countField) {
    auto number = [&](int64_t n) {
      return arith::ConstantIntOp::create(b, loc, i64, n).getResult();
    };
    Value field = LLVM::GEPOp::create(b, loc, ptr, frame, entry->getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{0, *countField});
    Value last = arith::SubIOp::create(b, loc, LLVM::LoadOp::create(b, loc, i64, field), number(1));
    Value half = arith::ShRUIOp::create(b, loc, index, number(1));
    Value isOdd = arith::TruncIOp::create(b, loc, b.getI1Type(), index);
    index = arith::SelectOp::create(b, loc, isOdd, arith::SubIOp::create(b, loc, last, half), half);
  }
  func::CallOp::create(b, loc, row,
                       ValueRange{entry->getArgument(0), index, entry->getArgument(1)});
  return function;
}

/// All rows at once where there are few, else as the caller's parallel-for shares them out.
void RowSharer::callFunction(scf::ForOp loop, func::FuncOp function, Value frame) {
  Location loc = loop.getLoc();
  Type i64 = b.getI64Type();
  Value rows = loop.getUpperBound();
  Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, rows,
                                     arith::ConstantIndexOp::create(b, loc, sharedFrom));
  auto branch = scf::IfOp::create(b, loc, many, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  callParallelFor(b, loc, kernel, function, toI64(b, loc, rows), frame);
  b.setInsertionPointToStart(branch.elseBlock());
  Value none = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(0));
  func::CallOp::create(b, loc, function, ValueRange{frame, none, toI64(b, loc, rows)});
}

} // namespace

LogicalResult ctxc::shareRows(ModuleOp module, const CpuTarget &target) {
  for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (isKernel(kernel) && failed(RowSharer(kernel, target).run()))
      return failure();
  return success();
}
