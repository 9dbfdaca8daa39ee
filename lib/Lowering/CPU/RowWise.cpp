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
  op.walk([&](memref::LoadOp load) { // loads in its body may be at any index
    Origin origin = originOf(load.getMemRef());
    result.isKnown &= bool(origin.root);
    result.accesses.push_back({origin.root, false, false});
  });
  return result;
}

/// Whether two ops access the same memory only at their own rows, or only read it.
static bool areIndependent(const RowWise &a, const RowWise &b) {
  for (const RowWise::Access &x : a.accesses)
    for (const RowWise::Access &y : b.accesses)
      if (x.root == y.root && (x.isWrite || y.isWrite) && !(x.isOwnRow && y.isOwnRow))
        return false;
  return true;
}

bool ctxc::mayJoin(ArrayRef<RowWise> row, const RowWise &next) {
  if (!next.isKnown || !row.front().isKnown || next.count != row.front().count)
    return false;
  return llvm::all_of(row, [&](const RowWise &op) { return areIndependent(op, next); });
}
