//===- ContextDependence.h - which values of a block depend on the context -===//
//
// The dependence is followed forward from the results of contextual ops
// (ContextualOpInterface). The inputs of `inputsAreSources` depend on the context too: this is so
// in a layer that the context reaches past patched layers (ModelFlow.h).
//
// Without facts, by structure, every contextual op is a source. With a block's facts, a contextual
// op that reads only its own token (a window of one, a convolution with one tap) is not a source,
// and a value that is the same number for all activations ends the dependence.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_CONTEXTDEPENDENCE_H
#define CTXC_ANALYSIS_CONTEXTDEPENDENCE_H

#include "ctxc/Analysis/BlockGraph.h"
#include "ctxc/Analysis/InputSources.h"
#include "ctxc/Analysis/ZeroRange.h"

namespace ctxc {

class ContextDependence {
public:
  /// By structure, without facts.
  ContextDependence(const BlockGraph &graph, const InputSources &inputsAreSources);
  ContextDependence(const BlockGraph &graph, const ZeroRange &facts,
                    const InputSources &inputsAreSources);

  bool depends(mlir::Value value) const { return dependent.test(graph.vertex(value)); }
  bool depends(mlir::Operation *op) const { return dependent.test(graph.vertex(op)); }

  /// Where the dependence starts: contextual ops, and the inputs if they are sources.
  const BlockGraph::Set &sources() const { return starts; }
  const BlockGraph::Set &vertices() const { return dependent; }
  /// Vertices whose values are constants, which neither the context nor a patch changes.
  const BlockGraph::Set &constants() const { return unchanging; }
  const InputSources &inputsAreSources() const { return inputs; }

private:
  const BlockGraph &graph;
  InputSources inputs;
  BlockGraph::Set starts, dependent, unchanging;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_CONTEXTDEPENDENCE_H
