// Linalg on memrefs becomes loops: vector loops for reductions, scalar loops for everything else.
#include "lib/Lowering/CPU/LinalgToLoops.h"
#include "ctxc/Lowering/Passes.h"
#include "dialects/Kernel/Kernel.h"
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

FailureOr<scf::ForOp> ctxc::linalgToLoops(RewriterBase &rewriter, linalg::LinalgOp op) {
  if (scf::ForOp loop = reductionToLoops(rewriter, op))
    return loop;
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  if (failed(loops))
    return op.emitError("has no loops");
  for (Operation *inner : *loops)
    kernel::mark<kernel::LinalgLoop>(inner);
  return loops->empty() ? scf::ForOp() : cast<scf::ForOp>(loops->front());
}

namespace {

struct LinalgToLoops : ctxc::impl::LinalgToLoopsBase<LinalgToLoops> {
  void runOnOperation() override {
    if (failed(expectBuffers(getOperation(), getArgument())))
      return signalPassFailure();
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      if (failed(linalgToLoops(rewriter, op)))
        return signalPassFailure();
      rewriter.eraseOp(op);
    }
  }
};

} // namespace
