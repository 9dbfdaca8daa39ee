//===- ContextChange.h - what the context surely changes -------------------===//
//
// ContextDependence is an upper bound: a value outside of it is the same in both runs. This is the
// lower bound, which rejections need: for an open set of weights, contexts and tokens, the value
// differs between the runs. Nothing is known where branches may cancel, as in a − a, a ⊘ a, or a
// slice that leaves the changed entries out. Where an op joins several branches, it must be
// possible to silence all but one: by a matrix or a scale near zero whose parameter the remaining
// branch does not read.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_CONTEXTCHANGE_H
#define CTXC_ANALYSIS_CONTEXTCHANGE_H

#include "ctxc/Analysis/BlockGraph.h"
#include "ctxc/Analysis/InputSources.h"
#include "ctxc/Analysis/ZeroRange.h"

namespace ctxc {

/// Which entries of a value surely change.
enum class Extent {
  Unknown, ///< not shown for any entry
  Some,    ///< at least one
  Every    ///< each of them
};

class ContextChange {
public:
  ContextChange(const BlockGraph &graph, const ZeroRange &zeros,
                const InputSources &inputsAreSources);

  Extent extent(mlir::Value value) const { return changed[graph.vertex(value)]; }

private:
  using Extents = std::vector<Extent>;
  Extents follow(Extents extents, const BlockGraph::Set &sources) const;
  Extent transfer(mlir::Operation *op, const Extents &extents, const BlockGraph::Set &sources,
                  const BlockGraph::Set &dependent) const;
  Extent throughOne(mlir::OpOperand &operand, Extent extent) const;
  BlockGraph::Set silenced(llvm::ArrayRef<mlir::Value> kept) const;
  Extent ofSource(xf::ContextualOpInterface op, const Extents &varying) const;

  const BlockGraph &graph;
  const ZeroRange &zeros;
  Extents changed;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_CONTEXTCHANGE_H
