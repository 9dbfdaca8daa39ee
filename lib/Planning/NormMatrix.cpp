#include "NormMatrix.h"

using namespace mlir;
using namespace ctxc;

Operation *ctxc::findNormMatrix(Operation *op) {
  auto scale = dyn_cast<xf::ScaleOp>(op);
  auto norm = scale ? scale.getData().getDefiningOp<xf::NormalizeOp>() : xf::NormalizeOp();
  if (!norm || norm.getKind() != xf::NormKind::rms || !norm->hasOneUse())
    return nullptr;
  auto matrix = norm.getData().getDefiningOp<xf::LinearOp>();
  return matrix && matrix->hasOneUse() ? matrix.getOperation() : nullptr;
}

bool ctxc::followsNorm(Value data) {
  Operation *op = data.getDefiningOp();
  while (isa_and_nonnull<xf::ScaleOp, xf::BiasOp>(op))
    op = cast<xf::AssignableOpInterface>(op).getDataOperand().get().getDefiningOp();
  return isa_and_nonnull<xf::NormalizeOp>(op);
}
