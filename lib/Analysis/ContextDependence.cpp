#include "ctxc/Analysis/ContextDependence.h"

using namespace ctxc;

ContextDependence::ContextDependence(const BlockGraph &graph, const InputSources &inputsAreSources)
    : graph(graph), inputs(inputsAreSources), starts(graph.contextualOps()) {
  BlockGraph::Set arguments = graph.inputs();
  for (unsigned input : arguments.set_bits())
    if (inputs.contains(input))
      starts.set(input);
  dependent = graph.reach(starts);
}
