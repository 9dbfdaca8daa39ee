//===- InputControl.h - input controllability as a vertex cut --------------===//
//
// The f of Theorem 3 (everything upstream of what G reads) is input-controllable if a set F of
// assignable ops meets every path from a context-dependent source to it: each op of F gets its full
// run's output again (Lemmas "input controllability of MLPs", "of pre-norm MLPs"), and so does
// every value whose paths from the context all cross F.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_INPUTCONTROL_H
#define CTXC_ANALYSIS_INPUTCONTROL_H

#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/Sites.h"

namespace ctxc {

/// A problem of input control: the paths from `sources` to `sinks` (both sets of vertices) that
/// avoid the `settled` vertices, whose values are known to be equal in both runs.
struct InputProblem {
  BlockGraph::Set sources, sinks, settled;
};

/// F, or the path that no assignable op interrupts.
struct InputCut {
  bool exists = false;
  llvm::SmallVector<mlir::Operation *> ops; ///< F, in block order
  llvm::SmallVector<unsigned> witness;      ///< vertices from a source to a sink
};

/// What a site costs in a cut: 1 for a bias (no condition), 2 for a matrix, 3
/// for a scale (it divides entry by entry).
unsigned cutCost(xf::AssignableOpInterface op);

/// The cheapest set of assignable ops, none of them in `excluded`, that meets every path:
/// an exact minimum vertex cut by maximum flow (Boost.Graph); among equally cheap cuts, the one
/// nearest to the sources.
InputCut findMinimumCut(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                        const BlockGraph::Set &excluded);

/// The paper's rule: the first assignable matrix on every path (gate and up of a gated MLP, c_fc of
/// a plain one). The cut does not exist if some path has no such matrix; the witness is that path.
InputCut findFirstMatrices(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                           const BlockGraph::Set &excluded);

/// Minimal cuts, from which no op can be left out: at most `limit`, the smallest first.
std::vector<llvm::SmallVector<mlir::Operation *>>
findMinimalCuts(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                const BlockGraph::Set &excluded, unsigned limit);

/// Whether `ops` meet every path of `problem`.
bool isCut(const BlockGraph &graph, const InputProblem &problem,
           llvm::ArrayRef<mlir::Operation *> ops);

} // namespace ctxc

#endif // CTXC_ANALYSIS_INPUTCONTROL_H
