#include "ctxc/Planning/PlanCost.h"
#include "ctxc/Analysis/Sites.h"

using namespace mlir;
using namespace ctxc;

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static int64_t width(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// How many vectors a matrix computes; each needs a change of its own.
static int64_t vectorsOf(xf::AssignableOpInterface op) {
  return elements(op->getResult(0)) / width(op->getResult(0));
}

static int64_t numbersOf(xf::AssignableOpInterface op) {
  switch (op.getChangeForm()) {
  case xf::ChangeForm::Rank1:
    return elements(op->getResult(0)) + vectorsOf(op) * width(op.getDataOperand().get());
  case xf::ChangeForm::Delta:
    // A token selects entries of a bank, and its patch changes these alone.
    return std::min(elements(op.getParameterOperand().get()), elements(op->getResult(0)));
  }
  llvm_unreachable("a change of no known form");
}

PlanCost ctxc::costOf(const BlockPlan &plan) {
  PlanCost cost;
  for (Operation *op : plan.patchedOps()) {
    auto site = cast<xf::AssignableOpInterface>(op);
    ++cost.patches;
    cost.numbers += numbersOf(site);
    if (site.getObligation() == xf::Obligation::NonzeroVector)
      cost.vectorDivisions += vectorsOf(site);
    if (site.getObligation() != xf::Obligation::NonzeroElements)
      continue;
    cost.elementDivisions += elements(site.getDataOperand().get());
    const OutputPatch *output = plan.outputOf(op);
    // A constant is the same number in every program.
    Operation *data = site.getDataOperand().get().getDefiningOp();
    bool isRounded = !data || data->getNumOperands() > 0;
    if (isRounded && (!output || !output->normMatrix) && cost.fragility.empty())
      cost.fragility = "'" + Sites::name(op) +
                       "' is divided by its input entry by entry, and "
                       "other programs round small entries in another way";
  }
  for (const PlanObligation &o : plan.obligations)
    if (o.kind == xf::Obligation::NonzeroElements && !isa<xf::AssignableOpInterface>(o.site))
      cost.elementDivisions += elements(o.value);
  return cost;
}
