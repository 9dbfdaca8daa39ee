// The passes around bufferisation, and the pipeline that turns tensors into memrefs.
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/Order.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_COPIESTOLINALG
#define GEN_PASS_DEF_UNSHAREFILLS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

struct UnshareFills : ctxc::impl::UnshareFillsBase<UnshareFills> {
  void runOnOperation() override {
    SmallVector<linalg::FillOp> fills;
    getOperation().walk([&](linalg::FillOp fill) {
      if (!fill->use_empty())
        fills.push_back(fill);
    });
    for (linalg::FillOp fill : fills)
      for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(fill->getUses()))) {
        OpBuilder b(use.getOwner());
        IRMapping own;
        if (auto empty = fill.getOutputs().front().getDefiningOp<tensor::EmptyOp>())
          own.map(empty.getResult(), b.clone(*empty)->getResult(0));
        use.set(b.clone(*fill, own)->getResult(0));
      }
  }
};

struct CopiesToLinalg : ctxc::impl::CopiesToLinalgBase<CopiesToLinalg> {
  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp copy) {
      if (copy.getSource() != copy.getTarget()) {
        OpBuilder b(copy);
        linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(), copy.getTarget());
      }
      copy.erase();
    });
  }
};

} // namespace

void ctxc::buildBufferizePipeline(OpPassManager &pm) {
  pm.addPass(memref::createResolveShapedTypeResultDimsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createUnshareFills());
  pm.addPass(bufferization::createOneShotBufferizePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

LogicalResult ctxc::expectBuffers(ModuleOp module, StringRef pass) {
  WalkResult walk = module.walk([&](linalg::LinalgOp op) {
    if (op.hasPureBufferSemantics())
      return WalkResult::advance();
    op.emitError("found on tensors, expected on memrefs: run ctxc-bufferize before ") << pass;
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
