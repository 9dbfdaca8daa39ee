// Tells LLVM which innermost loops of linalg have independent iterations.
//
// A loop that writes y[…, i] in iteration i, and reads y nowhere else, could be vectorised, but
// LLVM must assume that the other memory which it reads may alias y. Bufferisation has made sure
// that it does not. LLVM learns this from access groups: loads and stores carry a group that the
// loop names (llvm.loop.parallel_accesses). The first pass marks loops in scf; the second marks the
// loads and stores once they are in the LLVM dialect.
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CPU/LinalgToLoops.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_MARKPARALLELACCESSES
#define GEN_PASS_DEF_MARKPARALLELLOOPS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

static constexpr StringLiteral annotationName = "llvm.loop_annotation";

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

namespace {

struct MarkParallelLoops : ctxc::impl::MarkParallelLoopsBase<MarkParallelLoops> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    getOperation().walk([&](scf::ForOp loop) {
      if (!isParallel(loop))
        return;
      loop->setAttr(annotationName, LLVM::LoopAnnotationAttr::get(
                                        context, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                        {}, LLVM::AccessGroupAttr::get(context)));
    });
  }
};

struct MarkParallelAccesses : ctxc::impl::MarkParallelAccessesBase<MarkParallelAccesses> {
  void runOnOperation() override {
    // The loop's mark is now on its back edge, at the end of the loop's only block.
    getOperation().walk([](LLVM::BrOp back) {
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
};

} // namespace
