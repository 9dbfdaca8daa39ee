// The facts of a block that planning needs, queries that solver and
// checker share, and the explanation of a failure.
#ifndef CTXC_LIB_PLANNING_DIAGNOSE_H
#define CTXC_LIB_PLANNING_DIAGNOSE_H

#include "ctxc/Analysis/InputControl.h"
#include "ctxc/Analysis/OutputControl.h"
#include "ctxc/Planning/Planner.h"

namespace ctxc {

/// All analyses of one block under one set of options.
struct BlockFacts {
  BlockFacts(xf::BlockOp block, const PlanOptions &options)
      : graph(block), zeros(block, options.layer), context(graph, zeros, options.inputsAreSources),
        sites(graph, zeros, options.bindings, options.scope) {}

  BlockGraph graph;
  ZeroRange zeros;
  ContextDependence context;
  Sites sites;
};

/// The vertices of the ops patched for the outputs: G and the norm matrices.
BlockGraph::Set outputPatches(const BlockGraph &graph, const BlockPlan &plan);

/// The paths that must not exist, except through F, once the goals are settled: from
/// the context, or a patch of G, to an output of the block; and, unless `outputOnly`, from
/// the context to what G reads (for a G outside the contextual part).
InputProblem inputProblem(const BlockFacts &facts, const BlockPlan &plan, bool outputOnly);

/// Sets of chains to one value, each of which brings all of it to its target together: of every
/// value that is put together from parts, the parts (OutputChains::partial). At most `most`.
std::vector<llvm::SmallVector<OutputChain, 1>> coverings(llvm::ArrayRef<OutputChain> partial,
                                                         size_t most);
/// The op on a chain of the plan of which another part has no chain to the same goal; or null.
mlir::Operation *findUncoveredPart(const BlockPlan &plan);

/// The path that has no cut (InputCut::witness), as a note for each op.
std::vector<Remark> witnessNotes(const BlockFacts &facts, llvm::ArrayRef<unsigned> path);

/// Rejected or Undecided, and why.
void explainFailure(const BlockFacts &facts, const PlanOptions &options, Verdict &verdict);

} // namespace ctxc

#endif // CTXC_LIB_PLANNING_DIAGNOSE_H
