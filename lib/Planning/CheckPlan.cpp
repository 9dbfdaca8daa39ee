// Checks a plan apart from how it was found: conditions P1 to P6 of Planner.h.
#include "Diagnose.h"
#include "NormMatrix.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace ctxc;

namespace {
class PlanChecker {
public:
  PlanChecker(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options)
      : block(block), facts(block, options), plan(plan) {}

  LogicalResult check(bool outputOnly) {
    if (!plan.outputSite)
      return checkNothingToAbsorb();
    return failure(failed(checkSites()) || failed(checkNormMatrix()) || failed(checkChain()) ||
                   failed(checkTarget()) || failed(checkCut(outputOnly)));
  }

private:
  LogicalResult checkNothingToAbsorb();
  LogicalResult checkSites();
  LogicalResult checkNormMatrix();
  LogicalResult checkChain();
  LogicalResult checkTarget();
  LogicalResult checkCut(bool outputOnly);

  xf::BlockOp block;
  BlockFacts facts;
  const BlockPlan &plan;
  Value target;              ///< the end of the chain
  SmallVector<Value> others; ///< outputs with context that do not follow from it
};
} // namespace

LogicalResult PlanChecker::checkNothingToAbsorb() {
  if (facts.context.depends(facts.graph.yield()))
    return block.emitOpError("depends on the context, but its plan has no output site");
  return success();
}

// P1
LogicalResult PlanChecker::checkSites() {
  llvm::SmallPtrSet<Operation *, 8> seen;
  SmallVector<Operation *> sites = plan.inputSites;
  sites.push_back(plan.outputSite);
  if (plan.normMatrix)
    sites.push_back(plan.normMatrix);
  for (Operation *op : sites) {
    if (op->getBlock() != &block.getBody().front())
      return op->emitError("the plan patches an op of another block than '")
             << block.getSymName() << "'";
    const Site *site = facts.sites.lookup(op);
    if (!site)
      return op->emitError("the plan patches ") << op->getName() << ", which has no parameter";
    if (site->status != SiteStatus::Assignable)
      return op->emitError("the plan patches '") << Sites::name(op) << "': " << site->why;
    if (!seen.insert(op).second)
      return op->emitError("the plan patches '") << Sites::name(op) << "' twice";
  }
  return success();
}

// P6
LogicalResult PlanChecker::checkNormMatrix() {
  if (plan.normMatrix && findNormMatrix(plan.outputSite) != plan.normMatrix)
    return plan.normMatrix->emitError("the plan patches '")
           << Sites::name(plan.normMatrix) << "' together with the scale '"
           << Sites::name(plan.outputSite) << "', but it is not the matrix before its norm alone";
  return success();
}

// P2
LogicalResult PlanChecker::checkChain() {
  OutputChain chain{plan.outputSite, plan.chain};
  if (std::string why = ctxc::checkChain(facts.graph, facts.zeros, chain); !why.empty())
    return plan.outputSite->emitError("the plan's chain from '")
           << Sites::name(plan.outputSite) << "' cannot be solved: " << why;
  return success();
}

// P3 and the outputs that P4 is about
LogicalResult PlanChecker::checkTarget() {
  target = (plan.chain.empty() ? plan.outputSite : plan.chain.back().op)->getResult(0);
  Operation *yield = facts.graph.yield();
  if (plan.waist
          ? plan.waist != target
          : plan.output >= yield->getNumOperands() || yield->getOperand(plan.output) != target)
    return plan.outputSite->emitError("the plan's chain from '")
           << Sites::name(plan.outputSite) << "' does not end where the plan says";
  BlockGraph::Set blocked = facts.graph.none();
  blocked.set(facts.graph.vertex(target));
  BlockGraph::Set around = facts.graph.reach(facts.context.sources(), blocked);
  for (Value output : yield->getOperands())
    if (around.test(facts.graph.vertex(output)))
      others.push_back(output);
  if (!others.empty() && plan.waist)
    return plan.outputSite->emitError("the plan's chain ends inside the block, and the context "
                                      "reaches an output past its end");
  if (!leavesOthersAlone(facts.graph, {plan.outputSite, plan.chain}, target))
    return plan.outputSite->emitError("the plan's patch of '")
           << Sites::name(plan.outputSite) << "' changes another output too";
  return success();
}

// P4, P5
LogicalResult PlanChecker::checkCut(bool outputOnly) {
  InputProblem problem = inputProblem(facts, plan, target, others);
  if (outputOnly) {
    problem.sinks.reset();
    for (Value other : others)
      problem.sinks.set(facts.graph.vertex(other));
  }
  BlockGraph::Set patchedForOutput = outputPatches(facts.graph, plan);
  BlockGraph::Set afterG = facts.graph.reach(patchedForOutput);
  for (Operation *op : plan.inputSites)
    if (afterG.test(facts.graph.vertex(op)))
      return op->emitError("the plan patches '") << Sites::name(op)
                                                 << "' for the input, but it reads what is patched "
                                                    "for the output";
  if (!isCut(facts.graph, problem, plan.inputSites))
    return plan.outputSite->emitError("the plan's input patches leave a path from the context to "
                                      "what '")
           << Sites::name(plan.outputSite) << "' reads";
  return success();
}

LogicalResult ctxc::checkPlan(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options,
                              bool outputOnly) {
  return PlanChecker(block, plan, options).check(outputOnly);
}
