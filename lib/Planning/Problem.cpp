// Questions about a plan that solver and checker share.
#include "Diagnose.h"

using namespace mlir;
using namespace ctxc;

BlockGraph::Set ctxc::outputPatches(const BlockGraph &graph, const BlockPlan &plan) {
  BlockGraph::Set set = graph.none();
  for (const OutputPatch &output : plan.outputs)
    for (Operation *op : {output.site, output.normMatrix})
      if (op)
        set.set(graph.vertex(op));
  return set;
}

InputProblem ctxc::inputProblem(const BlockFacts &facts, const BlockPlan &plan, bool outputOnly) {
  const BlockGraph &graph = facts.graph;
  InputProblem problem{facts.context.sources(), graph.none(), graph.none()};
  problem.sources |= outputPatches(graph, plan);
  for (Value output : graph.yield()->getOperands())
    problem.sinks.set(graph.vertex(output));
  for (const OutputPatch &output : plan.outputs) {
    problem.settled.set(graph.vertex(output.goal));
    // What W_o of the contextual part reads is the context's own.
    auto first = cast<xf::AssignableOpInterface>(output.first());
    if (outputOnly || facts.sites.inContextualPart(first))
      continue;
    // Beside its data also what selects the experts.
    for (OpOperand &operand : first->getOpOperands())
      if (&operand != &first.getParameterOperand())
        problem.sinks.set(graph.vertex(operand.get()));
  }
  return problem;
}
