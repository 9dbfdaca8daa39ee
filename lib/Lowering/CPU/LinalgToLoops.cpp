// Linalg on memrefs becomes loops: vector loops for the products of attention and for reductions,
// scalar loops for everything else.
#include "lib/Lowering/CPU/LinalgToLoops.h"
#include "ctxc/Lowering/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CPU/AttentionLoops.h"
#include "lib/Lowering/CPU/RowReductions.h"
#include "lib/Lowering/Order.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_LINALGTOLOOPS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

bool ctxc::isOfLinalg(scf::ForOp loop) { return kernel::isMarked<kernel::LinalgLoop>(loop); }

FailureOr<scf::ForOp> ctxc::linalgToLoops(RewriterBase &rewriter, linalg::LinalgOp op,
                                          const CpuTarget &target) {
  scf::ForOp loop = attentionToLoops(rewriter, op, target);
  if (!loop)
    loop = reductionToLoops(rewriter, op);
  if (loop)
    return loop;
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  if (failed(loops))
    return op.emitError("has no loops");
  for (Operation *inner : *loops)
    kernel::mark<kernel::LinalgLoop>(inner);
  if (loops->size() > 1)
    kernel::mark<kernel::GroupLoop>((*loops)[1]);
  if (kernel::isMarked<kernel::Causal>(op)) {
    auto rows = cast<scf::ForOp>(loops->front()), slots = cast<scf::ForOp>(loops->back());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(rows.getBody());
    auto [from, to] = seenSlots(rewriter, op, rows.getInductionVar(), rows.getUpperBound(),
                                slots.getUpperBound());
    slots.setLowerBound(from);
    slots.setUpperBound(to);
  }
  return loops->empty() ? scf::ForOp() : cast<scf::ForOp>(loops->front());
}

namespace {

struct LinalgToLoops : ctxc::impl::LinalgToLoopsBase<LinalgToLoops> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(expectBuffers(getOperation(), getArgument())))
      return signalPassFailure();
    CpuTarget target;
    target.lanes = lanes;
    target.registers = registers;
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      if (failed(linalgToLoops(rewriter, op, target)))
        return signalPassFailure();
      rewriter.eraseOp(op);
    }
  }
};

} // namespace
