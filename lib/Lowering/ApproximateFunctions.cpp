#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ctxc {
#define GEN_PASS_DEF_APPROXIMATEFUNCTIONS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

struct ApproximateFunctions : ctxc::impl::ApproximateFunctionsBase<ApproximateFunctions> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.log", "math.log1p"},
                                name);
    });
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace
