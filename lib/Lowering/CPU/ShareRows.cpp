// Makes one loop over the rows of a call of ops that follow each other, and has it divided among
// the caller's threads (OutlineRows.h).
//
// All ops but contractions run row by row: a linalg op whose first loop goes over the rows, or a
// loop over rows that calls a support function. Consecutive ops of this kind become one loop over
// the rows if each op reads only its own row of what the others write. The values of a row are then
// still in the caches closest to the core when the next op reads them.
#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CPU/LinalgToLoops.h"
#include "lib/Lowering/CPU/OutlineRows.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/CPU/RowWise.h"
#include "lib/Lowering/Order.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_SHAREROWS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

class RowSharer {
public:
  explicit RowSharer(func::FuncOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()), outliner(kernel) {}

  LogicalResult run();

private:
  LogicalResult finish(SmallVectorImpl<RowWise> &group);
  scf::ForOp merge(ArrayRef<RowWise> group);

  func::FuncOp kernel;
  IRRewriter rewriter;
  RowOutliner outliner;
};

LogicalResult RowSharer::run() {
  SmallVector<RowWise> group;
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
    std::optional<RowWise> next = rowWise(op);
    if (next && !group.empty() && mayJoin(group, *next)) {
      group.push_back(std::move(*next));
      continue;
    }
    // Ops that only define a value stay where they are, before the loop that the group becomes.
    if (!next && (isa<memref::AllocOp>(op) || isMemoryEffectFree(&op)) &&
        !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (failed(finish(group)))
      return failure();
    if (!next && isa<linalg::LinalgOp>(op))
      missed(&op, "rows", "its first loop is not over the rows that it writes");
    if (next)
      group.push_back(std::move(*next));
  }
  return success();
}

LogicalResult RowSharer::finish(SmallVectorImpl<RowWise> &group) {
  if (group.empty())
    return success();
  scf::ForOp rows = merge(group);
  group.clear();
  if (!rows)
    return failure();
  outliner.outline(rows);
  return success();
}

/// One loop over the rows, which replaces the last op of the group.
scf::ForOp RowSharer::merge(ArrayRef<RowWise> group) {
  if (auto loop = dyn_cast<scf::ForOp>(group.front().op))
    return loop;
  scf::ForOp merged;
  Operation *last = group.back().op;
  for (const RowWise &member : group) {
    rewriter.setInsertionPoint(last);
    auto linalgOp = cast<linalg::LinalgOp>(member.op);
    FailureOr<scf::ForOp> made = linalgToLoops(rewriter, linalgOp);
    if (failed(made))
      return nullptr;
    if (!merged) {
      merged = *made;
    } else {
      // The operands of the second loop are defined between the two loops.
      merged->moveBefore(*made);
      rewriter.eraseOp(made->getBody()->getTerminator());
      rewriter.inlineBlockBefore(made->getBody(), merged.getBody()->getTerminator(),
                                 merged.getInductionVar());
      rewriter.eraseOp(*made);
    }
    if (member.op != last)
      rewriter.eraseOp(member.op);
  }
  rewriter.eraseOp(last);
  return merged;
}

struct ShareRows : ctxc::impl::ShareRowsBase<ShareRows> {
  void runOnOperation() override {
    if (failed(expectBuffers(getOperation(), getArgument())))
      return signalPassFailure();
    for (func::FuncOp kernel : kernelFunctions(getOperation()))
      if (failed(RowSharer(kernel).run()))
        return signalPassFailure();
  }
};

} // namespace
