// The facts of a block that planning asks for, questions that solver and
// checker share, and the words for a failure.
#ifndef CTXC_LIB_PLANNING_DIAGNOSE_H
#define CTXC_LIB_PLANNING_DIAGNOSE_H

#include "ctxc/Analysis/InputControl.h"
#include "ctxc/Analysis/OutputControl.h"
#include "ctxc/Planning/Planner.h"

namespace ctxc {

/// All analyses of one block under one set of options.
struct BlockFacts {
  BlockFacts(xf::BlockOp block, const PlanOptions &options)
      : graph(block), zeros(block), context(graph, options.inputsAreSources),
        sites(graph, zeros, options.bindings) {}

  BlockGraph graph;
  ZeroRange zeros;
  ContextDependence context;
  Sites sites;
};

/// The vertices of the ops patched for the output: G and normMatrix.
BlockGraph::Set outputPatches(const BlockGraph &graph, const BlockPlan &plan);

/// What F must cut: paths from the context to what the output patch reads, and to
/// `others`, outputs that do not depend on the plan's `target`.
InputProblem inputProblem(const BlockFacts &facts, const BlockPlan &plan, mlir::Value target,
                          llvm::ArrayRef<mlir::Value> others);

/// Whether G of `chain` reaches no output but through `target`: one that it reaches
/// by another way, also one without context, the patch would change.
bool leavesOthersAlone(const BlockGraph &graph, const OutputChain &chain, mlir::Value target);

/// Rejected or Undecided, and why.
void explainFailure(const BlockFacts &facts, Verdict &verdict);

} // namespace ctxc

#endif // CTXC_LIB_PLANNING_DIAGNOSE_H
