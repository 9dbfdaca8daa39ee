// Checks a plan, however it was found: conditions P1 to P6 of Planner.h.
#include "Diagnose.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace ctxc;

namespace {
class PlanChecker {
public:
  PlanChecker(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options)
      : block(block), facts(block, options), plan(plan) {}

  LogicalResult check(bool outputOnly) {
    if (plan.isEmpty())
      return checkNothingToAbsorb();
    return failure(failed(checkSites()) || failed(checkNormMatrices()) || failed(checkChains()) ||
                   failed(checkCut(outputOnly)));
  }

private:
  LogicalResult checkNothingToAbsorb();
  LogicalResult checkSites();
  LogicalResult checkNormMatrices();
  LogicalResult checkChains();
  LogicalResult checkCut(bool outputOnly);

  xf::BlockOp block;
  BlockFacts facts;
  const BlockPlan &plan;
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
  for (const OutputPatch &output : plan.outputs) {
    sites.push_back(output.site);
    if (output.normMatrix)
      sites.push_back(output.normMatrix);
  }
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
LogicalResult PlanChecker::checkNormMatrices() {
  for (const OutputPatch &output : plan.outputs)
    if (output.normMatrix &&
        cast<xf::AssignableOpInterface>(output.site).findNormMatrix() != output.normMatrix)
      return output.normMatrix->emitError("the plan patches '")
             << Sites::name(output.normMatrix) << "' together with the scale '"
             << Sites::name(output.site) << "', but it is not the matrix before its norm alone";
  return success();
}

// P2, P3
LogicalResult PlanChecker::checkChains() {
  for (const OutputPatch &output : plan.outputs) {
    auto error = [&] {
      return output.site->emitError("the plan's chain from '") << Sites::name(output.site) << "' ";
    };
    if (std::string why = checkChain(facts.graph, facts.zeros, output); !why.empty())
      return error() << "cannot be solved: " << why;
    Operation *last = output.links.empty() ? output.site : output.links.back().op;
    if (output.goal != last->getResult(0))
      return error() << "does not end where the plan says";
  }
  if (Operation *op = findUncoveredPart(plan))
    return op->emitError("the plan brings one part of ")
           << op->getName() << " to its target, and leaves another as it is";
  if (!plan.solvingOrder())
    return plan.outputs.front().site->emitError(
        "the plan's outputs wait for each other: none can be solved for first");
  return success();
}

// P4, P5
LogicalResult PlanChecker::checkCut(bool outputOnly) {
  BlockGraph::Set afterG = facts.graph.reach(outputPatches(facts.graph, plan));
  for (Operation *op : plan.inputSites)
    if (afterG.test(facts.graph.vertex(op)))
      return op->emitError("the plan patches '") << Sites::name(op)
                                                 << "' for the input, but it reads what is patched "
                                                    "for the output";
  if (!isCut(facts.graph, inputProblem(facts, plan, /*outputOnly=*/true), plan.inputSites))
    return plan.outputs.front().site->emitError(
        "the plan leaves a path from the context, or from what it patches, to an output of the "
        "block past its goals");
  if (!outputOnly && !isCut(facts.graph, inputProblem(facts, plan, false), plan.inputSites))
    return plan.outputs.front().site->emitError("the plan's input patches leave a path from the "
                                                "context to what '")
           << Sites::name(plan.outputs.front().site) << "' reads";
  return success();
}

LogicalResult ctxc::checkPlan(xf::BlockOp block, const BlockPlan &plan, const PlanOptions &options,
                              bool outputOnly) {
  return PlanChecker(block, plan, options).check(outputOnly);
}
