// Queries about a plan that solver and checker share.
#include "Diagnose.h"
#include "dialects/XF/GatheredSite.h"

using namespace mlir;
using namespace ctxc;

std::vector<Remark> ctxc::witnessNotes(const BlockFacts &facts, ArrayRef<unsigned> path) {
  std::vector<Remark> notes;
  for (auto [i, vertex] : llvm::enumerate(path)) {
    Operation *op = facts.graph.op(vertex);
    std::string text = i == 0                 ? "the context comes in here"
                       : i + 1 == path.size() ? "and reaches this without having met a patch"
                                              : "and passes this";
    if (const Site *site = op ? facts.sites.lookup(op) : nullptr)
      text += site->why.empty() ? " ('" + Sites::name(op) + "' is patched for the output)"
                                : " (" + site->why + ")";
    notes.push_back({op, text});
  }
  return notes;
}

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
  InputProblem problem{facts.context.sources(), graph.none(), facts.context.constants()};
  problem.sources |= outputPatches(graph, plan);
  for (Value output : graph.yield()->getOperands())
    problem.sinks.set(graph.vertex(output));
  for (const OutputPatch &output : plan.outputs) {
    problem.settled.set(graph.vertex(output.goal));
    // W_o of the contextual part reads the context itself.
    auto first = cast<xf::AssignableOpInterface>(output.first());
    if (outputOnly || facts.sites.inContextualPart(first))
      continue;
    // Besides its data, G reads the selection of experts.
    for (Value value : xf::valuesBefore(first))
      problem.sinks.set(graph.vertex(value));
  }
  return problem;
}
