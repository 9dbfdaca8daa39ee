// Finds the ops of a layer that a plan patches, and which of the paper's two gradient cases
// applies.
#include "Sites.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::experiments;

static llvm::Error unsupported(const ProgramStep &step, const llvm::Twine &why) {
  return makeError("layer " + llvm::Twine(*step.index) +
                   ": has no trace loss in the paper: " + why +
                   "; expected patches of whole matrices, biases, and a scale after an RMS norm, "
                   "with additions alone behind them");
}

xf::ParamOp experiments::parameterOf(Operation *op) {
  return cast<xf::AssignableOpInterface>(op)
      .getParameterOperand()
      .get()
      .getDefiningOp<xf::ParamOp>();
}

/// Whether the block's output is the result of `op` plus another value.
static bool isAddedToTheOutput(Operation *op) {
  Value value = op->getResult(0);
  while (value.hasOneUse() && isa<xf::AddOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return value.hasOneUse() && isa<xf::YieldOp>(*value.user_begin());
}

llvm::Expected<LayerSites> experiments::sitesOf(const ProgramStep &constStep) {
  ProgramStep step = constStep;
  LayerSites sites;
  SmallVector<Operation *> patched;
  for (patch::LoadOp load : step.applied.getBody().getOps<patch::LoadOp>())
    for (xf::ParamOp param : step.block.getBody().getOps<xf::ParamOp>())
      if (param.getName() == load.getParameter())
        for (Operation *user : param->getUsers())
          patched.push_back(user);
  for (Operation *op : patched) {
    if (!isa<xf::LinearOp, xf::BiasOp, xf::ScaleOp>(op))
      return unsupported(step, "a plan patches '" + op->getName().getStringRef() + "'");
    if (!isAddedToTheOutput(op)) {
      sites.inputs.push_back(op);
      continue;
    }
    if (sites.output)
      return unsupported(step, "a plan patches two parameters behind which there are additions");
    sites.output = op;
  }
  if (!sites.output || step.block.getNumResults() != 1)
    return unsupported(step, "the output is more than a sum with the patched op's");
  if (isa<xf::ScaleOp>(sites.output)) {
    auto matrix = cast<xf::AssignableOpInterface>(sites.output).findNormMatrix();
    sites.normMatrix = dyn_cast_or_null<xf::LinearOp>(matrix);
    if (!sites.normMatrix)
      return unsupported(step, "a scale is patched that is no post-norm's");
    llvm::erase(sites.inputs, matrix);
  }
  if (llvm::any_of(sites.inputs, [](Operation *op) { return isa<xf::ScaleOp>(op); }))
    return unsupported(step, "a plan patches a scale in front of the MLP");
  return sites;
}
