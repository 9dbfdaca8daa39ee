// Loops of linalg ops, and telling LLVM which innermost ones have steps that do not depend on each
// other.
//
// A loop that writes y[…, i] at step i, and reads y nowhere else, could be vectorised but for what
// LLVM must suppose: that the memory of what else it reads is y's. Bufferisation has made sure that
// it is not. LLVM is told by groups of memory accesses, which loops name
// (llvm.loop.parallel_accesses): on loops in scf, whose loads and stores are marked when they are
// LLVM's.
#include "lib/Lowering/CPU/AttentionLoops.h"
#include "lib/Lowering/CPU/RowReductions.h"
#include "lib/Lowering/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

static constexpr StringLiteral annotationName = "llvm.loop_annotation";

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
    slots.setUpperBound(seenSlots(rewriter, op.getLoc(), rows.getInductionVar(),
                                  rows.getUpperBound(), slots.getUpperBound()));
  }
  return loops->empty() ? scf::ForOp() : cast<scf::ForOp>(loops->front());
}

LogicalResult ctxc::linalgToLoops(ModuleOp module, const CpuTarget &target) {
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  IRRewriter rewriter(module.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(linalgToLoops(rewriter, op, target)))
      return failure();
    rewriter.eraseOp(op);
  }
  return success();
}

static bool isParallel(scf::ForOp loop) {
  if (!isOfLinalg(loop) || loop.getNumResults())
    return false;
  memref::StoreOp store;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto found = dyn_cast<memref::StoreOp>(op)) {
      if (store)
        return false;
      store = found;
    } else if (op.getNumRegions() || (!isa<memref::LoadOp>(op) && !isMemoryEffectFree(&op))) {
      return false;
    }
  }
  if (!store || store.getIndices().empty() || store.getIndices().back() != loop.getInductionVar())
    return false;
  return llvm::all_of(loop.getBody()->getOps<memref::LoadOp>(), [&](memref::LoadOp load) {
    return load.getMemRef() != store.getMemRef() || load.getIndices() == store.getIndices();
  });
}

void ctxc::markParallelLoops(ModuleOp module) {
  MLIRContext *context = module.getContext();
  module.walk([&](scf::ForOp loop) {
    if (!isParallel(loop))
      return;
    loop->setAttr(annotationName,
                  LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                                {}, {}, {}, LLVM::AccessGroupAttr::get(context)));
  });
}

void ctxc::markParallelAccesses(ModuleOp module) {
  // A loop's mark is where it goes back now, at the end of its one block.
  module.walk([](LLVM::BrOp back) {
    auto annotation = back->getAttrOfType<LLVM::LoopAnnotationAttr>(annotationName);
    if (!annotation)
      return;
    back->removeAttr(annotationName);
    back.setLoopAnnotationAttr(annotation);
    auto groups = ArrayAttr::get(back.getContext(),
                                 llvm::to_vector_of<Attribute>(annotation.getParallelAccesses()));
    for (Operation &op : *back->getBlock())
      if (auto access = dyn_cast<LLVM::AccessGroupOpInterface>(op))
        access.setAccessGroups(groups);
  });
}
