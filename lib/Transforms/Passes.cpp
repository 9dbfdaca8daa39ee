// The transforms as passes.
#include "ctxc/Transforms/Passes.h"
#include "ctxc/Transforms/BuildPatch.h"

using namespace mlir;

namespace ctxc {

#define GEN_PASS_DEF_OUTLINEMODELENDS
#define GEN_PASS_DEF_PACKLINEARS
#include "ctxc/Transforms/Passes.h.inc"

namespace {

struct OutlineModelEnds : impl::OutlineModelEndsBase<OutlineModelEnds> {
  void runOnOperation() override {
    for (xf::ModelOp model : llvm::to_vector(getOperation().getOps<xf::ModelOp>()))
      if (failed(outlineModelEnds(model)))
        signalPassFailure();
  }
};

struct PackLinears : impl::PackLinearsBase<PackLinears> {
  void runOnOperation() override { numPacked += packLinears(getOperation()); }
};

} // namespace
} // namespace ctxc
