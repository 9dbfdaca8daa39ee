#include "PlanSearch.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;

SmallVector<Goals> PlanSearch::goals() const {
  SmallVector<Goals> result;
  for (Value waist : findWaists(facts.graph, facts.context.sources(), facts.context.constants()))
    result.push_back({waist});
  Goals outputs;
  for (Value output : facts.graph.yield()->getOperands())
    if (facts.context.depends(output) && !llvm::is_contained(outputs, output))
      outputs.push_back(output);
  for (Value output : outputs)
    if (!llvm::is_contained(result, Goals{output}))
      result.push_back({output});
  if (outputs.size() > 1)
    result.push_back(outputs);
  if (Goals inner = innerGoals(outputs); !inner.empty() && !llvm::is_contained(result, inner))
    result.push_back(inner);
  return result;
}

Goals PlanSearch::innerGoals(const Goals &outputs) const {
  Goals goals, work = outputs;
  llvm::DenseSet<Value> seen(outputs.begin(), outputs.end());
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || isa<xf::ContextualOpInterface>(op) || facts.sites.isOutOfScope(op))
      return {};
    if (!choicesFor(value, 1).empty()) {
      goals.push_back(value);
      continue;
    }
    for (Value operand : op->getOperands())
      if (facts.context.depends(operand) && seen.insert(operand).second)
        work.push_back(operand);
  }
  return goals;
}

Operation *PlanSearch::normMatrixOf(Operation *site) const {
  if (options.update == patch::UpdateKind::naive)
    return nullptr;
  Operation *matrix = cast<xf::AssignableOpInterface>(site).findNormMatrix();
  return matrix && facts.sites.isAssignable(matrix) ? matrix : nullptr;
}

/// Whether no op is patched twice. Such a plan has no solving order; here it takes no place among
/// the plans that are looked at.
static bool isDisjoint(ArrayRef<OutputPatch> outputs) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  for (const OutputPatch &output : outputs)
    for (Operation *op : {output.site, output.normMatrix})
      if (op && !seen.insert(op).second)
        return false;
  return true;
}

/// The nearest to the goal first; of equally near ones matrices before vectors, since a change of
/// rank 1 acts along one direction of what is read, and a vector's on everything.
static void sortChains(MutableArrayRef<OutputChain> chains) {
  auto rank = [](const OutputChain &chain) {
    auto site = cast<xf::AssignableOpInterface>(chain.site);
    return std::pair(chain.links.size(), site.getChangeForm() != xf::ChangeForm::Rank1);
  };
  for (size_t i = 1; i < chains.size(); ++i) // equal ones keep their order
    for (size_t j = i; j > 0 && rank(chains[j]) < rank(chains[j - 1]); --j)
      std::swap(chains[j], chains[j - 1]);
}

std::vector<PlanSearch::Outputs> PlanSearch::choicesFor(Value goal, size_t most) const {
  std::vector<Outputs> choices;
  OutputChains found = findOutputChains(facts.graph, facts.sites, facts.zeros, goal);
  sortChains(found.chains);
  for (const OutputChain &chain : found.chains) {
    OutputPatch output{chain, goal, normMatrixOf(chain.site)};
    choices.push_back({output});
    // F may need the matrix before the norm; the scale alone is then
    // patched for the output.
    if (output.normMatrix) {
      output.normMatrix = nullptr;
      choices.push_back({output});
    }
  }
  if (!choices.empty())
    return choices;
  for (const auto &chains : coverings(found.partial, most)) {
    choices.emplace_back();
    for (const OutputChain &chain : chains) {
      // What a slice leaves as it is is known of the scale's result, not of the matrix's.
      bool keepsRest = llvm::any_of(
          chain.links, [](ChainLink link) { return xf::isPartOfOperand(link.op, link.operand); });
      choices.back().push_back({chain, goal, keepsRest ? nullptr : normMatrixOf(chain.site)});
    }
  }
  return choices;
}

std::vector<BlockPlan> PlanSearch::outputPlans(const Goals &goals) const {
  // Every choice of a chain for each goal; there are few goals, with few chains each.
  constexpr size_t most = 256;
  std::vector<BlockPlan> plans(1);
  plans.front().split = options.split;
  for (Value goal : goals) {
    std::vector<BlockPlan> longer;
    for (const BlockPlan &plan : plans)
      for (const Outputs &choice : choicesFor(goal, most)) {
        longer.push_back(plan);
        longer.back().outputs.append(choice.begin(), choice.end());
        if (!isDisjoint(longer.back().outputs) || longer.size() > most)
          longer.pop_back();
      }
    plans = std::move(longer);
  }
  for (BlockPlan &plan : plans)
    llvm::sort(plan.outputs, [](const OutputPatch &a, const OutputPatch &b) {
      return a.site != b.site && a.site->isBeforeInBlock(b.site);
    });
  llvm::erase_if(plans, [](const BlockPlan &plan) { return !plan.solvingOrder(); });
  return plans;
}

/// The ops after G, which cannot be patched before it.
BlockGraph::Set PlanSearch::afterOutputs(const BlockPlan &plan) const {
  return facts.graph.reach(outputPatches(facts.graph, plan));
}

InputCut PlanSearch::findInputCut(const BlockPlan &plan) const {
  return findMinimumCut(facts.graph, facts.sites, inputProblem(facts, plan, /*outputOnly=*/false),
                        afterOutputs(plan));
}

bool PlanSearch::addInputs(BlockPlan &plan, bool anyCut) const {
  InputProblem problem = inputProblem(facts, plan, /*outputOnly=*/false);
  BlockGraph::Set excluded = afterOutputs(plan);
  InputCut cut = anyCut ? findMinimumCut(facts.graph, facts.sites, problem, excluded)
                        : findFirstMatrices(facts.graph, facts.sites, problem, excluded);
  if (cut.exists)
    plan.inputSites = cut.ops;
  return cut.exists;
}

std::vector<BlockPlan> PlanSearch::withAllInputs(const BlockPlan &plan, unsigned limit) const {
  std::vector<BlockPlan> plans;
  InputProblem problem = inputProblem(facts, plan, /*outputOnly=*/false);
  for (SmallVector<Operation *> &cut :
       findMinimalCuts(facts.graph, facts.sites, problem, afterOutputs(plan), limit)) {
    plans.push_back(plan);
    plans.back().inputSites = std::move(cut);
  }
  return plans;
}

bool PlanSearch::isOutputOnly(const BlockPlan &plan) const {
  return isCut(facts.graph, inputProblem(facts, plan, /*outputOnly=*/true), {});
}

//===----------------------------------------------------------------------===//
// Obligations
//===----------------------------------------------------------------------===//

static PlanObligation makeObligation(const BlockFacts &facts, Operation *op, xf::ControlRole role) {
  auto site = cast<xf::AssignableOpInterface>(op);
  Value data = site.getDataOperand().get();
  return {op, site.getObligation(), facts.zeros.failure(site.getObligation(), data),
          site.getLemma(role).str(), data};
}

void PlanSearch::addObligations(BlockPlan &plan) const {
  for (Operation *op : plan.patchedOps())
    plan.obligations.push_back(makeObligation(
        facts, op, plan.outputOf(op) ? xf::ControlRole::Output : xf::ControlRole::Input));
  for (const OutputPatch &output : plan.outputs)
    for (ChainLink link : output.links) {
      auto solvable = cast<xf::SolvableOpInterface>(link.op);
      std::string reason;
      if (solvable.getSolvability(link.operand, reason) != xf::Solvability::Conditional)
        continue;
      for (const xf::LinkCondition &c : solvable.getConditions(link.operand, plan.split)) {
        Value factor = link.op->getOperand(c.operand);
        plan.obligations.push_back(
            {link.op, c.kind, facts.zeros.failure(c.kind, factor), c.lemma, factor});
      }
    }
  addSelections(plan);
}

/// Selections that depend on the context and that F cuts off from it.
void PlanSearch::addSelections(BlockPlan &plan) const {
  BlockGraph::Set patched = facts.graph.none();
  for (Operation *op : plan.inputSites)
    patched.set(facts.graph.vertex(op));
  patched |= facts.context.constants();
  BlockGraph::Set unsettled = facts.graph.reach(facts.context.sources(), patched);
  unsettled |= facts.graph.reach(outputPatches(facts.graph, plan));
  for (Operation &op : facts.graph.getBlock().getBody().front().without_terminator())
    for (Value result : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (type && type.getElementType().isInteger() && facts.context.depends(result) &&
          !unsettled.test(facts.graph.vertex(result)))
        plan.obligations.push_back({&op, xf::Obligation::SameSelection,
                                    facts.zeros.failure(xf::Obligation::SameSelection, result),
                                    "input controllability of MLPs", result});
    }
}
