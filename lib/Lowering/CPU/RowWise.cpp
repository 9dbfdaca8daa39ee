#include "lib/Lowering/CPU/RowWise.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

std::optional<RowWise> ctxc::rowWise(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && kernel::isMarked<kernel::RowLoop>(loop))
    return RowWise{&op, loop.getUpperBound(), /*isKnown=*/false, {}};
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !linalgOp.hasPureBufferSemantics() || linalgOp.getNumLoops() == 0 ||
      linalgOp.getIteratorTypesArray().front() != utils::IteratorType::parallel)
    return std::nullopt;
  RowWise result{&op, {}, true, {}};
  for (OpOperand &operand : op.getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
    auto isLoop = [&](unsigned i) {
      return map.getNumResults() > i && map.getResult(i) == getAffineDimExpr(i, op.getContext());
    };
    bool byRow = isLoop(0);
    bool isWrite = linalgOp.isDpsInit(&operand);
    if (isWrite && (!byRow || !type.isDynamicDim(0)))
      return std::nullopt;
    if (isWrite)
      result.count = rowsOf(operand.get());
    Origin origin = originOf(operand.get());
    result.isKnown &= bool(origin.root);
    result.accesses.push_back(
        {origin.root, byRow && origin.sameRows, isWrite, operand.get(), byRow && isLoop(1)});
  }
  if (!result.count)
    return std::nullopt;
  op.walk([&](memref::LoadOp load) { // loads in its body may be at any index
    Origin origin = originOf(load.getMemRef());
    result.isKnown &= bool(origin.root);
    result.accesses.push_back({origin.root, false, false, load.getMemRef(), false});
  });
  return result;
}

using Independent = llvm::function_ref<bool(const RowWise::Access &, const RowWise::Access &)>;

/// Whether each pair of accesses to the same memory, at least one of which is a write, is
/// `independent`.
static bool areIndependent(const RowWise &a, const RowWise &b, Independent independent) {
  for (const RowWise::Access &x : a.accesses)
    for (const RowWise::Access &y : b.accesses)
      if (x.root == y.root && (x.isWrite || y.isWrite) && !independent(x, y))
        return false;
  return true;
}

bool ctxc::mayJoin(ArrayRef<RowWise> row, const RowWise &next) {
  if (!next.isKnown || !row.front().isKnown || next.count != row.front().count)
    return false;
  auto ownRows = [](const RowWise::Access &x, const RowWise::Access &y) {
    return x.isOwnRow && y.isOwnRow;
  };
  return llvm::all_of(row, [&](const RowWise &op) { return areIndependent(op, next, ownRows); });
}

std::optional<Groups> ctxc::groupsOf(ArrayRef<RowWise> row, OpBuilder &b) {
  auto ownGroups = [](const RowWise::Access &x, const RowWise::Access &y) {
    return x.isOwnGroup && y.isOwnGroup && x.view == y.view;
  };
  Groups groups{0, {}, 0};
  for (const RowWise &op : row) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op.op);
    if (!linalgOp || !op.isKnown || linalgOp.getNumLoops() < 2 ||
        linalgOp.getIteratorTypesArray()[1] != utils::IteratorType::parallel)
      return std::nullopt;
    for (const RowWise &other : row)
      if (!areIndependent(op, other, ownGroups))
        return std::nullopt;
    for (Value init : linalgOp.getDpsInits()) {
      auto type = cast<MemRefType>(init.getType());
      if (type.getRank() < 2 || type.isDynamicDim(1) ||
          (groups.count && groups.count != type.getDimSize(1)))
        return std::nullopt;
      groups.count = type.getDimSize(1);
      int64_t size = 1;
      for (int64_t i = 1; i < type.getRank(); ++i)
        if (!type.isDynamicDim(i))
          size *= type.getDimSize(i);
        else if (!groups.slots)
          groups.slots = b.createOrFold<memref::DimOp>(op.op->getLoc(), init, i);
      groups.size = std::max(groups.size, size);
    }
  }
  return groups.slots && groups.count > 1 ? std::optional(groups) : std::nullopt;
}
