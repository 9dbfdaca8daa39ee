// The function of a range of rows. From `sharedFrom` rows on, the caller's parallel-for runs it.
// The results of a row do not depend on this, because the order of computation within a row stays
// the same. A buffer that only one such loop uses needs memory for a single row in each range.
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

} // namespace

void RowOutliner::outline(scf::ForOp loop) {
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
  for (Value value : outside) {
    if (matchPattern(value, m_Constant()))
      continue;
    // Not the address of a function, for example: the loop stays where it is.
    if (!crossingType(value.getType())) {
      missed(loop, "rows", "a value that it needs cannot go to another function");
      return;
    }
    captured.push_back(value);
  }
  func::FuncOp row = makeRowFunction(loop, captured, own);
  func::FuncOp function = makeRangeFunction(row);
  ++count;

  Location loc = loop.getLoc();
  b.setInsertionPoint(loop);
  callFunction(loop, function, storeCrossing(b, loc, kernel, captured));
  loop.erase();
}

/// Creates a private function after the insertion point, which moves to the start of its body.
func::FuncOp RowOutliner::makeFunction(Location loc, StringRef suffix, ArrayRef<Type> arguments) {
  auto function = func::FuncOp::create(b, loc, (kernel.getName() + suffix + Twine(count)).str(),
                                       b.getFunctionType(arguments, {}));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

/// The loop's body as a function of the frame, a row, and the row at which buffers that only this
/// loop uses (`own`) are accessed. It must not be inlined: LLVM would vectorise a
/// loop over several rows, and would add up the sums of the remaining rows in another order.
func::FuncOp RowOutliner::makeRowFunction(scf::ForOp rows, ArrayRef<Value> captured,
                                          ArrayRef<OpOperand *> own) {
  Location loc = rows.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  b.setInsertionPointAfter(kernel);
  func::FuncOp function = makeFunction(loc, "_row_", {ptr, i64, i64});
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block &entry = function.front();
  IRMapping inside;
  inside.map(captured, loadCrossing(b, loc, entry.getArgument(0), captured));
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(rows.getRegion(), outside);
  for (Value value : outside)
    if (!inside.contains(value))
      inside.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  inside.map(rows.getInductionVar(), toIndex(b, loc, entry.getArgument(1)));
  Value place = toIndex(b, loc, entry.getArgument(2));
  for (Operation &op : rows.getBody()->without_terminator())
    b.clone(op, inside);
  for (OpOperand *index : own)
    inside.lookup(index->getOwner())->setOperand(index->getOperandNumber(), place);
  func::ReturnOp::create(b, loc);
  return function;
}

/// The function over a range of rows that threads run. All rows of a range keep the loop's own
/// buffers in the memory of the range's first row, which stays in the caches; the memory of the
/// other rows is never touched.
func::FuncOp RowOutliner::makeRangeFunction(func::FuncOp row) {
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
  Value index = toI64(b, loc, rows.getInductionVar());
  func::CallOp::create(b, loc, row, ValueRange{entry.getArgument(0), index, entry.getArgument(1)});
  return function;
}

/// Calls the parallel-for with many rows; few rows are one call.
void RowOutliner::callFunction(scf::ForOp loop, func::FuncOp function, Value frame) {
  Location loc = function.getLoc();
  Value rows = loop.getUpperBound(), count = toI64(b, loc, rows);
  Value isShared = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, rows,
                                         arith::ConstantIndexOp::create(b, loc, sharedFrom));
  auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  callParallelFor(b, loc, kernel, function, count, frame);
  b.setInsertionPointToStart(branch.elseBlock());
  Value zero = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(0));
  func::CallOp::create(b, loc, function, ValueRange{frame, zero, count});
}
