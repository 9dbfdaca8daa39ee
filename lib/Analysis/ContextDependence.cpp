#include "ctxc/Analysis/ContextDependence.h"

using namespace ctxc;

ContextDependence::ContextDependence(const BlockGraph &graph, bool inputsAreSources)
    : graph(graph), withInputs(inputsAreSources), starts(graph.contextualOps()) {
  if (inputsAreSources)
    starts |= graph.inputs();
  dependent = graph.reach(starts);
}
