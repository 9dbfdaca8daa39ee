//===- InputControl.h - input controllability as a vertex cut --------------===//
//
// The f of Theorem 3 (everything upstream of what G reads) is input-controllable
// where assignable ops F meet every path from a context-dependent source to it:
// each of F gets back its full run's output (Lemmas "input controllability of MLPs",
// "of pre-norm MLPs"), and so does everything whose context paths all cross F.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_INPUTCONTROL_H
#define CTXC_ANALYSIS_INPUTCONTROL_H

#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/Sites.h"

namespace ctxc {

/// A question of input control: paths from `sources` to `sinks` (both sets of
/// vertices) that avoid `settled` ones, whose values are known to be equal in
/// both runs.
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
/// a minimum vertex cut by maximum flow (Boost.Graph), exact; of equally cheap
/// cuts the one nearest to the sources.
InputCut findMinimumCut(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                        const BlockGraph::Set &excluded);

/// The paper's rule: of every path, its first assignable matrix (gate and up of a
/// gated MLP, c_fc of a plain one). Does not exist where some path has none; the
/// witness is that path.
InputCut findFirstMatrices(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                           const BlockGraph::Set &excluded);

/// Minimal cuts, of which no op can be left out: at most `limit`, the smallest first.
std::vector<llvm::SmallVector<mlir::Operation *>>
findMinimalCuts(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                const BlockGraph::Set &excluded, unsigned limit);

/// Whether `ops` meet every path of `problem`.
bool isCut(const BlockGraph &graph, const InputProblem &problem,
           llvm::ArrayRef<mlir::Operation *> ops);

} // namespace ctxc

#endif // CTXC_ANALYSIS_INPUTCONTROL_H
