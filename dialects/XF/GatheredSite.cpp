// The biases of the selected experts, y_j = B_{sel_j}: each is changed to its target by a vector of
// its own, whatever the experts' matrices are stored as.
#include "dialects/XF/GatheredSite.h"
#include "dialects/XF/InferTypes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ctxc::xf;

namespace {

struct GatherSite : AssignableOpInterface::ExternalModel<GatherSite, GatherOp> {
  OpOperand &getParameterOperand(Operation *op) const {
    return cast<GatherOp>(op).getDataMutable();
  }
  // It reads nothing else.
  OpOperand &getDataOperand(Operation *op) const { return cast<GatherOp>(op).getSelectedMutable(); }
  Obligation getObligation(Operation *) const { return Obligation::None; }
  ChangeForm getChangeForm(Operation *) const { return ChangeForm::Delta; }
  StringRef getLemma(Operation *, ControlRole role) const {
    return role == ControlRole::Input ? "input controllability of biases"
                                      : "output controllability of mixture of experts";
  }
  // As of an expert's matrix: no row is selected twice.
  bool coversOutput(Operation *op) const {
    auto gather = cast<GatherOp>(op);
    return ranked(gather.getType()).getRank() == 2 &&
           gather.getSelected().getDefiningOp<TopKOp>() != nullptr;
  }
};

} // namespace

SmallVector<Value> ctxc::xf::valuesBefore(AssignableOpInterface site) {
  SmallVector<Value> values;
  for (OpOperand &operand : site->getOpOperands())
    if (&operand != &site.getParameterOperand())
      values.push_back(operand.get());
  auto isIndices = [](Value value) { return getElementTypeOrSelf(value).isInteger(); };
  if (llvm::all_of(values, isIndices))
    for (Operation *user : site->getUsers())
      for (Value other : user->getOperands())
        if (other != site->getResult(0))
          values.push_back(other);
  return values;
}

void ctxc::xf::attachGatherModels(MLIRContext &context) {
  GatherOp::attachInterface<GatherSite>(context);
}
