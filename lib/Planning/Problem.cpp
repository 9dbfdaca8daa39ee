// Questions about a plan that solver and checker share.
#include "Diagnose.h"

using namespace mlir;
using namespace ctxc;

BlockGraph::Set ctxc::outputPatches(const BlockGraph &graph, const BlockPlan &plan) {
  BlockGraph::Set set = graph.none();
  for (Operation *op : {plan.outputSite, plan.normMatrix})
    if (op)
      set.set(graph.vertex(op));
  return set;
}

InputProblem ctxc::inputProblem(const BlockFacts &facts, const BlockPlan &plan, Value target,
                                ArrayRef<Value> others) {
  const BlockGraph &graph = facts.graph;
  InputProblem problem{facts.context.sources(), graph.none(), graph.none()};
  Operation *first = plan.normMatrix ? plan.normMatrix : plan.outputSite;
  problem.sinks.set(graph.vertex(cast<xf::AssignableOpInterface>(first).getDataOperand().get()));
  for (Value other : others)
    problem.sinks.set(graph.vertex(other));
  problem.settled.set(graph.vertex(target));
  return problem;
}

bool ctxc::leavesOthersAlone(const BlockGraph &graph, const OutputChain &chain, Value target) {
  // Where G's own result is the target, nothing is reached but through it.
  if (chain.links.empty())
    return true;
  BlockGraph::Set site = graph.none(), blocked = graph.none();
  site.set(graph.vertex(chain.site));
  blocked.set(graph.vertex(target));
  BlockGraph::Set reached = graph.reach(site, blocked);
  return llvm::none_of(graph.yield()->getOperands(),
                       [&](Value v) { return reached.test(graph.vertex(v)); });
}
