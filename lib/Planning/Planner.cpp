// The paper's plan for a block, or the verdict against it.
#include "ctxc/Planning/Planner.h"
#include "Diagnose.h"
#include "NormMatrix.h"
#include "ctxc/Analysis/InputControl.h"

using namespace mlir;
using namespace ctxc;

StringRef ctxc::stringify(VerdictKind kind) {
  switch (kind) {
  case VerdictKind::Controllable:
    return "controllable";
  case VerdictKind::OutputOnly:
    return "output-only";
  case VerdictKind::Rejected:
    return "rejected";
  case VerdictKind::Undecided:
    return "undecided";
  }
  llvm_unreachable("a verdict of no known kind");
}

namespace {

/// Where a plan's chain may end, and what of the outputs it leaves to F.
struct Goal {
  Value value;
  unsigned output = 0;          ///< its number, where it is yielded
  Value waist;                  ///< null where it is yielded
  SmallVector<Value> otherwise; ///< outputs that depend on the context and not on it
};

class Planner {
public:
  Planner(xf::BlockOp block, const PlanOptions &options)
      : facts(block, options), options(options) {}

  Verdict decide();

private:
  SmallVector<Goal> goals() const;
  bool tryControllable(const Goal &goal, const OutputChain &chain, BlockPlan &plan) const;
  bool tryInputs(const Goal &goal, BlockPlan &plan, bool anyCut) const;
  BlockPlan makePlan(const Goal &goal, const OutputChain &chain) const;
  Operation *normMatrixOf(Operation *site) const;
  void addObligations(BlockPlan &plan) const;

  BlockFacts facts;
  const PlanOptions &options;
};

/// What may be brought to its full-run value, the best first: values that all of
/// the context goes through, then single outputs.
SmallVector<Goal> Planner::goals() const {
  SmallVector<Goal> goals;
  Operation *yield = facts.graph.yield();
  for (Value waist : findWaists(facts.graph, facts.context.sources())) {
    auto it = llvm::find(yield->getOperands(), waist);
    if (it != yield->operand_end())
      goals.push_back({waist, unsigned(it - yield->operand_begin()), {}, {}});
    else
      goals.push_back({waist, 0, waist, {}});
  }
  for (unsigned i = 0; i < yield->getNumOperands(); ++i) {
    Value value = yield->getOperand(i);
    if (!facts.context.depends(value) ||
        llvm::any_of(goals, [&](const Goal &g) { return g.value == value; }))
      continue;
    Goal goal{value, i, {}, {}};
    for (Value other : yield->getOperands())
      if (other != value && facts.context.depends(other))
        goal.otherwise.push_back(other);
    goals.push_back(goal);
  }
  return goals;
}

Operation *Planner::normMatrixOf(Operation *site) const {
  if (options.update == patch::UpdateKind::naive)
    return nullptr;
  Operation *matrix = findNormMatrix(site);
  return matrix && facts.sites.isAssignable(matrix) ? matrix : nullptr;
}

BlockPlan Planner::makePlan(const Goal &goal, const OutputChain &chain) const {
  BlockPlan plan;
  plan.outputSite = chain.site;
  plan.chain = chain.links;
  plan.output = goal.output;
  plan.waist = goal.waist;
  plan.normMatrix = normMatrixOf(chain.site);
  return plan;
}

/// Finds F for the plan's G, first by the paper's rule, else (`anyCut`) the minimum cut.
bool Planner::tryInputs(const Goal &goal, BlockPlan &plan, bool anyCut) const {
  InputProblem problem = inputProblem(facts, plan, goal.value, goal.otherwise);
  // An op after G cannot be patched before it.
  BlockGraph::Set afterG = facts.graph.reach(outputPatches(facts.graph, plan));
  InputCut cut = anyCut ? findMinimumCut(facts.graph, facts.sites, problem, afterG)
                        : findFirstMatrices(facts.graph, facts.sites, problem, afterG);
  if (cut.exists)
    plan.inputSites = cut.ops;
  return cut.exists;
}

bool Planner::tryControllable(const Goal &goal, const OutputChain &chain, BlockPlan &plan) const {
  for (bool anyCut : {false, true}) {
    plan = makePlan(goal, chain);
    if (tryInputs(goal, plan, anyCut))
      return true;
    // The matrix before the norm may be what F needs; the scale alone is then
    // patched for the output.
    if (plan.normMatrix) {
      plan.normMatrix = nullptr;
      if (tryInputs(goal, plan, anyCut))
        return true;
    }
  }
  return false;
}

static PlanObligation makeObligation(const BlockFacts &facts, Operation *op, xf::ControlRole role) {
  auto site = cast<xf::AssignableOpInterface>(op);
  Value data = site.getDataOperand().get();
  std::string lemma = site.getLemma(role).str();
  if (role == xf::ControlRole::Input && followsNorm(data))
    lemma = "input controllability of pre-norm MLPs";
  return {op, site.getObligation(), facts.zeros.failure(site.getObligation(), data), lemma, data};
}

void Planner::addObligations(BlockPlan &plan) const {
  for (Operation *op : plan.inputSites)
    plan.obligations.push_back(makeObligation(facts, op, xf::ControlRole::Input));
  if (plan.normMatrix)
    plan.obligations.push_back(makeObligation(facts, plan.normMatrix, xf::ControlRole::Output));
  plan.obligations.push_back(makeObligation(facts, plan.outputSite, xf::ControlRole::Output));
  llvm::sort(plan.obligations, [](const PlanObligation &a, const PlanObligation &b) {
    return a.site != b.site && a.site->isBeforeInBlock(b.site);
  });
  for (ChainLink link : plan.chain) {
    std::string reason;
    if (cast<xf::SolvableOpInterface>(link.op).getSolvability(link.operand, reason) !=
        xf::Solvability::Conditional)
      continue;
    for (auto [i, factor] : llvm::enumerate(link.op->getOperands()))
      if (i != link.operand)
        plan.obligations.push_back({link.op, xf::Obligation::NonzeroElements,
                                    facts.zeros.failure(xf::Obligation::NonzeroElements, factor),
                                    "a known factor of the output chain", factor});
  }
}

Verdict Planner::decide() {
  Verdict verdict;
  if (!facts.context.depends(facts.graph.yield())) {
    verdict.kind = VerdictKind::Controllable;
    verdict.advice = "nothing in the block reads the context, so there is nothing to absorb";
    return verdict;
  }
  std::optional<BlockPlan> outputOnly;
  for (const Goal &goal : goals()) {
    OutputChains found = findOutputChains(facts.graph, facts.sites, facts.zeros, goal.value);
    for (const OutputChain &chain : found.chains) {
      if (!leavesOthersAlone(facts.graph, chain, goal.value))
        continue;
      if (tryControllable(goal, chain, verdict.plan)) {
        verdict.kind = VerdictKind::Controllable;
        addObligations(verdict.plan);
        return verdict;
      }
      if (!outputOnly && goal.otherwise.empty())
        outputOnly = makePlan(goal, chain);
    }
    // A value further in is a goal only where this one cannot be reached.
    if (outputOnly)
      break;
  }
  if (outputOnly) {
    verdict.kind = VerdictKind::OutputOnly;
    verdict.plan = *outputOnly;
    verdict.advice = "the patch is exact, but inside the block the two runs differ: no patchable "
                     "op stands between the context and what '" +
                     Sites::name(verdict.plan.outputSite) + "' reads";
    addObligations(verdict.plan);
    return verdict;
  }
  verdict.plan = {};
  explainFailure(facts, verdict);
  return verdict;
}

} // namespace

Verdict ctxc::planPaper(xf::BlockOp block, const PlanOptions &options) {
  return Planner(block, options).decide();
}
