#include "ctxc/Analysis/ContextDependence.h"

using namespace mlir;
using namespace ctxc;

ContextDependence::ContextDependence(const BlockGraph &graph, const InputSources &inputsAreSources)
    : graph(graph), inputs(inputsAreSources), starts(graph.contextualOps()),
      unchanging(graph.none()) {
  BlockGraph::Set arguments = graph.inputs();
  for (unsigned input : arguments.set_bits())
    if (inputs.contains(input))
      starts.set(input);
  dependent = graph.reach(starts);
}

ContextDependence::ContextDependence(const BlockGraph &graph, const ZeroRange &facts,
                                     const InputSources &inputsAreSources)
    : ContextDependence(graph, inputsAreSources) {
  for (unsigned v = 0; v < graph.size(); ++v) {
    Operation *op = graph.op(v);
    if (op && isa<xf::ContextualOpInterface>(op) && !facts.readsContext(op))
      starts.reset(v);
    if (op && op->getNumResults() == 1 && facts.facts(op->getResult(0)).getConstant())
      unchanging.set(v);
  }
  dependent = graph.reach(starts, unchanging);
}
