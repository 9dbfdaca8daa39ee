#include "lib/Lowering/RunPipeline.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

LogicalResult ctxc::runPipeline(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm = PassManager::on<ModuleOp>(module.getContext());
  pm.enableVerifier(CTXC_VERIFY_EACH);
  build(pm);
  return success(succeeded(pm.run(module)) && succeeded(verify(module)));
}
