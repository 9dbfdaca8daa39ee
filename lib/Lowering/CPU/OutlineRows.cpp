// The function of a range of rows. From `sharedFrom` rows on, the caller's parallel-for runs it.
// The results of a row do not depend on this, because the order of computation within a row stays
// the same. A buffer that only one such loop uses (attention's scores) needs memory for a single
// row in each range.
//
// Within a row, attention's loops go over groups of heads, and each group reads only its own part
// of what other ops write. The function of a row therefore also takes a range of groups. For a
// single row that sees many slots (decoding), the groups are divided among threads.
#include "lib/Lowering/CPU/OutlineRows.h"
#include "ctxc/Lowering/Kernel.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ctxc;

namespace {

/// With fewer rows, a second thread costs more time than it saves.
constexpr int64_t sharedFrom = 16;
/// The same threshold for the attention of one row, in slots × heads × size of a head.
constexpr int64_t sharedNumbers = 1 << 15;

//===----------------------------------------------------------------------===//
// Buffers that a loop has to itself
//===----------------------------------------------------------------------===//

/// The index without the identity affine.apply that the conversion from linalg to loops wraps it
/// in.
Value withoutIdentity(Value index) {
  auto apply = index.getDefiningOp<affine::AffineApplyOp>();
  return apply && apply.getAffineMap().isIdentity() ? apply.getOperand(0) : index;
}

/// The row indices of all accesses to `buffer`, if only the loop accesses it, and always at the
/// loop's own row.
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

/// The type in which a value is passed to another function; null where it cannot be passed.
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

} // namespace

void RowOutliner::outline(OutlinedLoop loop) {
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.rows.getRegion(), outside);
  llvm::SetVector<Operation *> buffers;
  for (Value value : outside)
    if (isa<MemRefType>(value.getType()))
      if (Value root = originOf(value).root)
        if (auto buffer = root.getDefiningOp<memref::AllocOp>())
          buffers.insert(buffer);
  SmallVector<OpOperand *> own;
  for (Operation *buffer : buffers)
    if (auto rows = ownRows(cast<memref::AllocOp>(buffer), loop.rows))
      own.append(*rows);
  SmallVector<Value> captured;
  SmallVector<Type> types;
  for (Value value : outside) {
    if (matchPattern(value, m_Constant()))
      continue;
    Type type = crossingType(value.getType());
    if (!type) { // such as the address of a function: the loop stays where it is
      missed(loop.rows, "rows", "a value that it needs cannot go to another function");
      return;
    }
    captured.push_back(value);
    types.push_back(type);
  }
  std::optional<int32_t> countField;
  if (loop.isCausal) {
    countField = captured.size();
    captured.push_back(loop.rows.getUpperBound());
    types.push_back(b.getI64Type());
  }
  auto frameType = LLVM::LLVMStructType::getLiteral(kernel.getContext(), types);
  func::FuncOp row = makeRowFunction(loop, captured, own, frameType);
  func::FuncOp function = makeRangeFunction(loop, row, frameType, countField);
  func::FuncOp ofGroups = loop.groups ? makeGroupsFunction(loop, row) : func::FuncOp();
  ++count;

  Location loc = loop.rows.getLoc();
  b.setInsertionPoint(loop.rows);
  SmallVector<Value> crossed;
  for (Value value : captured)
    crossed.push_back(toCrossing(b, loc, value));
  Value frame = storeFrame(b, loc, kernel, frameType, crossed);
  callFunction(loop, function, ofGroups, frame);
  loop.rows.erase();
}

/// Creates a private function after the insertion point, which moves to the start of its body.
func::FuncOp RowOutliner::makeFunction(Location loc, StringRef suffix, ArrayRef<Type> arguments) {
  auto function = func::FuncOp::create(b, loc, (kernel.getName() + suffix + Twine(count)).str(),
                                       b.getFunctionType(arguments, {}));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

/// The loop's body as a function of the frame, a row, the row at which buffers that only this loop
/// uses (`own`) are accessed, and a range of groups. It must not be inlined: LLVM would vectorise a
/// loop over several rows, and would add up the sums of the remaining rows in another order.
func::FuncOp RowOutliner::makeRowFunction(OutlinedLoop loop, ArrayRef<Value> captured,
                                          ArrayRef<OpOperand *> own, LLVM::LLVMStructType frame) {
  scf::ForOp rows = loop.rows;
  Location loc = rows.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  SmallVector<Type> arguments{ptr, i64, i64};
  if (loop.groups)
    arguments.append(2, i64);
  b.setInsertionPointAfter(kernel);
  func::FuncOp function = makeFunction(loc, "_row_", arguments);
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block &entry = function.front();
  IRMapping inside;
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value field = LLVM::GEPOp::create(b, loc, ptr, frame, entry.getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    Value crossed = LLVM::LoadOp::create(b, loc, frame.getBody()[i], field);
    inside.map(value, fromCrossing(b, loc, crossed, value.getType()));
  }
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(rows.getRegion(), outside);
  for (Value value : outside)
    if (!inside.contains(value))
      inside.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  inside.map(rows.getInductionVar(), toIndex(b, loc, entry.getArgument(1)));
  Value place = toIndex(b, loc, entry.getArgument(2)), begin, end;
  if (loop.groups) {
    begin = toIndex(b, loc, entry.getArgument(3));
    end = toIndex(b, loc, entry.getArgument(4));
  }
  for (Operation &op : rows.getBody()->without_terminator())
    b.clone(op, inside);
  for (OpOperand *index : own)
    inside.lookup(index->getOwner())->setOperand(index->getOperandNumber(), place);
  func::ReturnOp::create(b, loc);
  if (loop.groups)
    function.walk([&](scf::ForOp groups) {
      if (!kernel::isMarked<kernel::GroupLoop>(groups))
        return;
      groups.setLowerBound(begin);
      groups.setUpperBound(end);
    });
  return function;
}

/// The function over a range of rows that threads run. All rows of a range keep the loop's own
/// buffers in the memory of the range's first row, which stays in the caches; the memory of the
/// other rows is never touched. `countField` is the frame's field with the number of rows, where
/// later rows take longer. The rows are then counted alternately from both ends (first, last,
/// second, last but one, …), so that ranges of equal length take equal time.
func::FuncOp RowOutliner::makeRangeFunction(OutlinedLoop loop, func::FuncOp row,
                                            LLVM::LLVMStructType frame,
                                            std::optional<int32_t> countField) {
  Location loc = row.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointAfter(row);
  func::FuncOp function = makeFunction(loc, "_rows_", {ptr, i64, i64});
  Block &entry = function.front();
  auto rows = scf::ForOp::create(b, loc, toIndex(b, loc, entry.getArgument(1)),
                                 toIndex(b, loc, entry.getArgument(2)),
                                 arith::ConstantIndexOp::create(b, loc, 1));
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(rows.getBody());
  auto number = [&](int64_t n) { return arith::ConstantIntOp::create(b, loc, i64, n).getResult(); };
  Value index = toI64(b, loc, rows.getInductionVar());
  if (countField) {
    Value field = LLVM::GEPOp::create(b, loc, ptr, frame, entry.getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{0, *countField});
    Value last = arith::SubIOp::create(b, loc, LLVM::LoadOp::create(b, loc, i64, field), number(1));
    Value half = arith::ShRUIOp::create(b, loc, index, number(1));
    Value isOdd = arith::TruncIOp::create(b, loc, b.getI1Type(), index);
    index = arith::SelectOp::create(b, loc, isOdd, arith::SubIOp::create(b, loc, last, half), half);
  }
  SmallVector<Value> arguments{entry.getArgument(0), index, entry.getArgument(1)};
  if (loop.groups)
    arguments.append({number(0), number(loop.groups->count)});
  func::CallOp::create(b, loc, row, arguments);
  return function;
}

/// The function over a range of groups of a single row.
func::FuncOp RowOutliner::makeGroupsFunction(OutlinedLoop loop, func::FuncOp row) {
  Location loc = row.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointAfter(row);
  func::FuncOp function = makeFunction(loc, "_groups_", {ptr, i64, i64});
  Block &entry = function.front();
  Value first = arith::ConstantIntOp::create(b, loc, i64, 0);
  func::CallOp::create(
      b, loc, row,
      ValueRange{entry.getArgument(0), first, first, entry.getArgument(1), entry.getArgument(2)});
  func::ReturnOp::create(b, loc);
  return function;
}

/// Calls the parallel-for with many rows, or with the groups of a single row that sees many slots.
/// In all other cases the function is called once for all rows.
void RowOutliner::callFunction(OutlinedLoop loop, func::FuncOp function, func::FuncOp ofGroups,
                               Value frame) {
  Location loc = function.getLoc();
  Value rows = loop.rows.getUpperBound();
  OpBuilder::InsertionGuard guard(b);
  auto is = [&](arith::CmpIPredicate predicate, Value value, int64_t bound) {
    return arith::CmpIOp::create(b, loc, predicate, value,
                                 arith::ConstantIndexOp::create(b, loc, bound));
  };
  auto number = [&](int64_t n) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(n)).getResult();
  };
  auto shareIf = [&](Value condition, func::FuncOp shared, auto &&howMany) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    callParallelFor(b, loc, kernel, shared, howMany(), frame);
    b.setInsertionPointToStart(branch.elseBlock());
  };
  shareIf(is(arith::CmpIPredicate::uge, rows, sharedFrom), function,
          [&] { return toI64(b, loc, rows); });
  if (ofGroups) {
    int64_t slots = llvm::divideCeil(sharedNumbers, loop.groups->size);
    Value one = is(arith::CmpIPredicate::eq, rows, 1);
    Value many = is(arith::CmpIPredicate::uge, loop.groups->slots, slots);
    shareIf(arith::AndIOp::create(b, loc, one, many), ofGroups,
            [&] { return number(loop.groups->count); });
  }
  func::CallOp::create(b, loc, function, ValueRange{frame, number(0), toI64(b, loc, rows)});
}
