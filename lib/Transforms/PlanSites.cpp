// The conditions P1 to P5 under which a plan can be built.
#include "PlanSites.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace ctxc {

xf::ParamOp parameterOf(Operation *site) {
  auto assignable = dyn_cast<xf::AssignableOpInterface>(site);
  return assignable ? assignable.getParameterOperand().get().getDefiningOp<xf::ParamOp>()
                    : xf::ParamOp();
}

Operation *firstPatched(const OutputPatch &output, patch::UpdateKind update) {
  return update == patch::UpdateKind::naive ? output.site : output.first();
}

static unsigned usesOfParameter(xf::BlockOp block, StringRef name) {
  Operation *yield = block.getBody().front().getTerminator();
  unsigned uses = 0;
  block.walk([&](xf::ParamOp p) {
    if (p.getName() == name)
      uses += llvm::count_if(p->getUsers(), [&](Operation *user) {
        return user == yield || dependentsOf(user).contains(yield);
      });
  });
  return uses;
}

/// P1, P2
static LogicalResult checkSite(xf::BlockOp block, Operation *site) {
  if (site->getBlock() != &block.getBody().front())
    return site->emitOpError("is planned to be patched in block '")
           << block.getSymName() << "', where it does not stand";
  if (!isa<patch::PatchableOpInterface>(site))
    return site->emitOpError("cannot be patched: it does not say how its parameter's patch is "
                             "formed (PatchableOpInterface)");
  xf::ParamOp param = parameterOf(site);
  if (!param)
    return site->emitOpError("cannot be patched: its parameter is computed, not an xf.param");
  if (param.getFrozen())
    return site->emitOpError("cannot be patched: its parameter '")
           << param.getName() << "' is frozen";
  if (usesOfParameter(block, param.getName()) != 1)
    return site->emitOpError("cannot be patched: its parameter '")
           << param.getName() << "' is also used elsewhere in the block";
  auto assignable = cast<xf::AssignableOpInterface>(site);
  if (!assignable.coversOutput())
    return site->emitOpError("cannot be patched: its parameter of type ")
           << param.getType() << " serves several vectors of its data, "
           << assignable.getDataOperand().get().getType() << ", at once";
  return success();
}

/// P3
static LogicalResult checkChain(const OutputPatch &output) {
  Value value = output.site->getResult(0);
  for (const ChainLink &link : output.links) {
    if (link.operand >= link.op->getNumOperands() || link.op->getOperand(link.operand) != value)
      return link.op->emitOpError("is no link of the output chain: its operand ")
             << link.operand << " is not the value of the link before";
    auto solvable = dyn_cast<xf::SolvableOpInterface>(link.op);
    std::string reason = "it is not a solvable op";
    if (!solvable || solvable.getSolvability(link.operand, reason) == xf::Solvability::No)
      return link.op->emitOpError("breaks the output chain: ") << reason;
    value = link.op->getResult(0);
  }
  if (output.goal != value)
    return output.site->emitOpError("has an output chain that does not end in its goal");
  return success();
}

/// P4
static LogicalResult checkNormMatrix(const OutputPatch &output) {
  if (cast<xf::AssignableOpInterface>(output.site).findNormMatrix() != output.normMatrix)
    return output.normMatrix->emitOpError(
        "is planned as the matrix before a post-norm; it must be an xf.linear read by nothing but "
        "the rms normalisation that the planned scale alone reads");
  return success();
}

LogicalResult checkBuildable(xf::BlockOp block, const BlockPlan &plan) {
  if (plan.isEmpty())
    return block.emitOpError("has no op planned to be patched for its output");
  for (Operation *site : plan.patchedOps())
    if (failed(checkSite(block, site)))
      return failure();
  for (const OutputPatch &output : plan.outputs)
    if ((output.normMatrix && failed(checkNormMatrix(output))) || failed(checkChain(output)))
      return failure();
  if (!plan.solvingOrder())
    return plan.outputs.front().site->emitOpError(
        "breaks the output chain: what it reads is not known before the output is patched");
  // P5
  for (const OutputPatch &output : plan.outputs) {
    OpSet later = waitingFor(output.first());
    for (Operation *site : plan.inputSites)
      if (site == output.first() || site == output.site || later.contains(site))
        return site->emitOpError("is planned as an input site, but depends on the output site");
  }
  return success();
}

} // namespace ctxc
