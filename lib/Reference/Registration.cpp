#include "Models.h"
#include "ctxc/Reference/Reference.h"

void ctxc::registerReferenceModels(mlir::DialectRegistry &registry) {
  registry.addExtension(+[](mlir::MLIRContext *context, xf::XFDialect *) {
    reference::attachTokenOps(*context);
    reference::attachMatrixOps(*context);
    reference::attachMixtureOps(*context);
    reference::attachContextualOps(*context);
  });
  registry.addExtension(+[](mlir::MLIRContext *context, patch::PatchDialect *) {
    reference::attachPatchOps(*context);
  });
}
