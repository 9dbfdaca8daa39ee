// --gates-to-xf: gates.mix in xf's own ops, for programs that do not have the plugin.
#include "Gates.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace ctxc;

namespace {

struct GatesToXF : PassWrapper<GatesToXF, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatesToXF)
  StringRef getArgument() const override { return "gates-to-xf"; }
  StringRef getDescription() const override { return "write gates.mix in xf's own ops"; }

  // b + σ(s) ⊙ (a − b)
  void runOnOperation() override {
    getOperation()->walk([](gates::MixOp op) {
      OpBuilder b(op);
      Value weight =
          xf::ActivationOp::create(b, op.getLoc(), xf::ActivationKind::sigmoid, op.getGate());
      Value difference = xf::SubOp::create(b, op.getLoc(), op.getLhs(), op.getRhs());
      Value part = xf::MulOp::create(b, op.getLoc(), difference, weight);
      op.replaceAllUsesWith(xf::AddOp::create(b, op.getLoc(), op.getRhs(), part).getResult());
      op.erase();
    });
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gates", "1.0", [] { PassRegistration<GatesToXF>(); }};
}
