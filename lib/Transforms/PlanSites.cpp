// The conditions P1 to P5 under which a plan can be built.
#include "PlanSites.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace ctxc {

SmallVector<Operation *> plannedSites(const BlockPlan &plan) {
  SmallVector<Operation *> sites(plan.inputSites);
  if (plan.normMatrix)
    sites.push_back(plan.normMatrix);
  if (plan.outputSite)
    sites.push_back(plan.outputSite);
  llvm::sort(sites, [](Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); });
  return sites;
}

xf::ParamOp parameterOf(Operation *site) {
  auto assignable = dyn_cast<xf::AssignableOpInterface>(site);
  return assignable ? assignable.getParameterOperand().get().getDefiningOp<xf::ParamOp>()
                    : xf::ParamOp();
}

OpSet dependentsOf(Operation *op) {
  OpSet seen;
  SmallVector<Operation *> work = {op};
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers())
      if (seen.insert(user).second)
        work.push_back(user);
  return seen;
}

Operation *firstPatchedForOutput(const BlockPlan &plan, patch::UpdateKind update) {
  bool invertsNorm = plan.normMatrix && update != patch::UpdateKind::naive;
  return invertsNorm ? plan.normMatrix : plan.outputSite;
}

Value goalOf(xf::BlockOp block, const BlockPlan &plan) {
  if (plan.waist)
    return plan.waist;
  Operation *yield = block.getBody().front().getTerminator();
  return plan.output < yield->getNumOperands() ? yield->getOperand(plan.output) : Value();
}

OpSet waitingFor(Operation *first) {
  OpSet waiting = dependentsOf(first);
  bool contextualWaits = false;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<xf::ContextualOpInterface>(op))
      continue;
    contextualWaits |= waiting.contains(op);
    if (contextualWaits && waiting.insert(op).second)
      for (Operation *dependent : dependentsOf(op))
        waiting.insert(dependent);
  }
  return waiting;
}

static ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

static unsigned usesOfParameter(xf::BlockOp block, StringRef name) {
  unsigned uses = 0;
  block.walk([&](xf::ParamOp p) {
    if (p.getName() == name)
      uses += std::distance(p->use_begin(), p->use_end());
  });
  return uses;
}

/// P1, P2
static LogicalResult checkSite(xf::BlockOp block, Operation *site) {
  if (site->getBlock() != &block.getBody().front())
    return site->emitOpError("is planned to be patched in block '")
           << block.getSymName() << "', where it does not stand";
  if (!isa<xf::LinearOp, xf::BiasOp, xf::ScaleOp>(site))
    return site->emitOpError("cannot be patched; a patch changes the parameter of an xf.linear, "
                             "xf.bias or xf.scale");
  xf::ParamOp param = parameterOf(site);
  if (!param)
    return site->emitOpError("cannot be patched: its parameter is computed, not an xf.param");
  if (param.getFrozen())
    return site->emitOpError("cannot be patched: its parameter '") << param.getName()
                                                                   << "' is frozen";
  if (usesOfParameter(block, param.getName()) != 1)
    return site->emitOpError("cannot be patched: its parameter '")
           << param.getName() << "' is also used elsewhere in the block";
  auto assignable = cast<xf::AssignableOpInterface>(site);
  Value data = assignable.getDataOperand().get();
  if (isa<xf::LinearOp>(site)) {
    if (shapeOf(data).size() != 1)
      return site->emitOpError("cannot be patched: its data is of type ")
             << data.getType() << ", and one rank-1 change serves one vector";
  } else if (shapeOf(data) != shapeOf(param.getResult())) {
    return site->emitOpError("cannot be patched: its parameter of type ")
           << param.getType() << " is shared by the leading dimensions of " << data.getType();
  }
  return success();
}

/// P3
static LogicalResult checkChain(xf::BlockOp block, const BlockPlan &plan) {
  Operation *first = plan.normMatrix ? plan.normMatrix : plan.outputSite;
  OpSet waiting = waitingFor(first);
  waiting.insert(first);
  Value value = plan.outputSite->getResult(0);
  for (const ChainLink &link : plan.chain) {
    if (link.operand >= link.op->getNumOperands() || link.op->getOperand(link.operand) != value)
      return link.op->emitOpError("is no link of the output chain: its operand ")
             << link.operand << " is not the value of the link before";
    auto solvable = dyn_cast<xf::SolvableOpInterface>(link.op);
    std::string reason = "it is not a solvable op";
    if (!solvable || solvable.getSolvability(link.operand, reason) == xf::Solvability::No)
      return link.op->emitOpError("breaks the output chain: ") << reason;
    for (OpOperand &other : link.op->getOpOperands())
      if (Operation *def = other.get().getDefiningOp();
          other.getOperandNumber() != link.operand && def && waiting.contains(def))
        return link.op->emitOpError("breaks the output chain: its operand ")
               << other.getOperandNumber() << " is not known before the output is patched";
    value = link.op->getResult(0);
  }
  if (goalOf(block, plan) == value)
    return success();
  if (plan.waist)
    return plan.outputSite->emitOpError(
        "has an output chain that does not end in the plan's waist");
  Operation *yield = block.getBody().front().getTerminator();
  return yield->emitOpError("does not give the end of the output chain as output ") << plan.output;
}

/// P4
static LogicalResult checkNormMatrix(const BlockPlan &plan) {
  auto scale = dyn_cast<xf::ScaleOp>(plan.outputSite);
  auto norm = scale ? scale.getData().getDefiningOp<xf::NormalizeOp>() : xf::NormalizeOp();
  if (!norm || norm.getKind() != xf::NormKind::rms || !norm->hasOneUse() ||
      norm.getData().getDefiningOp() != plan.normMatrix || !plan.normMatrix->hasOneUse() ||
      !isa<xf::LinearOp>(plan.normMatrix))
    return plan.normMatrix->emitOpError(
        "is planned as the matrix before a post-norm; it must be an xf.linear read by nothing but "
        "the rms normalisation that the planned scale alone reads");
  return success();
}

LogicalResult checkBuildable(xf::BlockOp block, const BlockPlan &plan) {
  if (!plan.outputSite)
    return block.emitOpError("has no op planned to be patched for its output");
  for (Operation *site : plannedSites(plan))
    if (failed(checkSite(block, site)))
      return failure();
  if (plan.normMatrix && failed(checkNormMatrix(plan)))
    return failure();
  if (failed(checkChain(block, plan)))
    return failure();
  // P5
  Operation *first = plan.normMatrix ? plan.normMatrix : plan.outputSite;
  OpSet later = waitingFor(first);
  for (Operation *site : plan.inputSites)
    if (site == first || later.contains(site))
      return site->emitOpError("is planned as an input site, but depends on the output site");
  return success();
}

} // namespace ctxc
