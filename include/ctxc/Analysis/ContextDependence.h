//===- ContextDependence.h - which values of a block depend on the context -===//
//
// The dependence is followed forward from the results of contextual ops
// (ContextualOpInterface). With `inputsAreSources` the block's inputs depend on the
// context too: in the first patched layer of a run that patches from a later layer on,
// where the layers below run without the context and unpatched.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_CONTEXTDEPENDENCE_H
#define CTXC_ANALYSIS_CONTEXTDEPENDENCE_H

#include "ctxc/Analysis/BlockGraph.h"

namespace ctxc {

class ContextDependence {
public:
  ContextDependence(const BlockGraph &graph, bool inputsAreSources);

  bool depends(mlir::Value value) const { return dependent.test(graph.vertex(value)); }
  bool depends(mlir::Operation *op) const { return dependent.test(graph.vertex(op)); }

  /// Where the dependence starts: contextual ops, and the inputs if they are sources.
  const BlockGraph::Set &sources() const { return starts; }
  const BlockGraph::Set &vertices() const { return dependent; }
  bool inputsAreSources() const { return withInputs; }

private:
  const BlockGraph &graph;
  bool withInputs;
  BlockGraph::Set starts, dependent;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_CONTEXTDEPENDENCE_H
