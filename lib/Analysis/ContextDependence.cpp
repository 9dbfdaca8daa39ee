#include "ctxc/Analysis/ContextDependence.h"

using namespace ctxc;

ContextDependence::ContextDependence(const BlockGraph &graph, bool inputsAreSources)
    : graph(graph), starts(graph.contextualOps()) {
  if (inputsAreSources)
    starts |= graph.inputs();
  dependent = graph.reach(starts);
}
