// Enumerates the plans of a block: which values can be brought to their full-run values
// (goals), by which G, and with which F.
#ifndef CTXC_LIB_PLANNING_PLANSEARCH_H
#define CTXC_LIB_PLANNING_PLANSEARCH_H

#include "Diagnose.h"

namespace ctxc {

/// Values that give the outputs their full-run values once they have their own, except for the
/// paths that F must cut.
using Goals = llvm::SmallVector<mlir::Value, 1>;

class PlanSearch {
public:
  PlanSearch(const BlockFacts &facts, const PlanOptions &options)
      : facts(facts), options(options) {}

  /// The possible goals, the best first: single values that
  /// the whole context goes through, the outermost first; single outputs, where F must
  /// cut the others; all outputs together; the parts that these are put together from.
  llvm::SmallVector<Goals> goals() const;

  /// All choices of a G for each of the goals, those nearest to the goals first: plans without
  /// F, whose outputs can be solved.
  std::vector<BlockPlan> outputPlans(const Goals &goals) const;

  /// Finds F for the plan's G, by the paper's rule, or (`anyCut`) the minimum cut.
  bool addInputs(BlockPlan &plan, bool anyCut) const;
  /// The minimum cut that F could be for the plan's G, or the path that no assignable op
  /// interrupts.
  InputCut findInputCut(const BlockPlan &plan) const;
  /// The plan with each minimal F, at most `limit`.
  std::vector<BlockPlan> withAllInputs(const BlockPlan &plan, unsigned limit) const;
  /// Whether the plan is exact without F, though the MLP's internals may differ.
  bool isOutputOnly(const BlockPlan &plan) const;

  void addObligations(BlockPlan &plan) const;

private:
  /// In the place of each output that no chain leads to, the operands of its op that depend on the
  /// context, and so on: with them the op gives the full run's value. Empty where one of them is
  /// the context's own.
  Goals innerGoals(const Goals &outputs) const;
  using Outputs = llvm::SmallVector<OutputPatch, 1>;
  /// What brings `goal` to its target: a chain; or, where there is none, chains to all parts of
  /// what it is put together from.
  std::vector<Outputs> choicesFor(mlir::Value goal, size_t most) const;
  void addSelections(BlockPlan &plan) const;
  mlir::Operation *normMatrixOf(mlir::Operation *site) const;
  BlockGraph::Set afterOutputs(const BlockPlan &plan) const;

  const BlockFacts &facts;
  const PlanOptions &options;
};

} // namespace ctxc

#endif // CTXC_LIB_PLANNING_PLANSEARCH_H
