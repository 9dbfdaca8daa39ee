// The warnings about a plan: conditions that fail on an open set, patches that other
// programs may not reproduce, internals that differ.
#include "Diagnose.h"
#include "PlanSearch.h"
#include "ctxc/Planning/ModelCheck.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;

static bool isConditional(const PlanObligation &o) {
  return o.kind != xf::Obligation::None && o.likelihood == xf::Zeros::OpenSet;
}

namespace {
class WarningSearch {
public:
  explicit WarningSearch(const VerdictGroup &group)
      : group(group), plan(group.verdict->plan), facts(group.block, *group.options),
        search(facts, *group.options) {}

  std::vector<Finding> find();

private:
  void findConditional();
  void findFragile();
  void findOutputOnly();
  std::string otherPlan(llvm::function_ref<bool(const PlanCandidate &)> isWanted) const;

  const VerdictGroup &group;
  const BlockPlan &plan;
  BlockFacts facts;
  PlanSearch search;
  std::vector<Finding> found;
};
} // namespace

/// "patch just 'b', 'c' instead" for the first other plan for which `isWanted` is true; or
/// empty.
std::string
WarningSearch::otherPlan(llvm::function_ref<bool(const PlanCandidate &)> isWanted) const {
  for (const PlanCandidate &candidate : enumeratePlans(group.block, *group.options)) {
    if (!isWanted(candidate))
      continue;
    SmallVector<std::string> quoted;
    for (Operation *op : candidate.plan.patchedOps())
      quoted.push_back("'" + Sites::name(op) + "'");
    return "patch just " + llvm::join(quoted, ", ") + " instead";
  }
  return "";
}

static bool isFree(const PlanCandidate &candidate) {
  return candidate.cost.fragility.empty() &&
         llvm::none_of(candidate.plan.obligations, isConditional);
}

//===----------------------------------------------------------------------===//
// conditional-obligation
//===----------------------------------------------------------------------===//

/// "the patch of 'down' divides by the length of its input"
static std::string divides(const PlanObligation &o) {
  std::string name = "'" + Sites::name(o.site) + "'";
  if (o.kind == xf::Obligation::FiniteElements)
    return "the plan multiplies by the divisor of this xf.div";
  if (!isa<xf::AssignableOpInterface>(o.site)) // a link of the chain
    return "the plan divides by the other factor of this " + o.site->getName().getStringRef().str();
  switch (o.kind) {
  case xf::Obligation::NonzeroVector:
    return "the patch of " + name + " divides by the length of its input";
  case xf::Obligation::NonzeroElements:
    return "the patch of " + name + " divides by each entry of its input";
  default:
    return "the patch of " + name + " has a condition on its input";
  }
}

void WarningSearch::findConditional() {
  for (const PlanObligation &o : plan.obligations) {
    if (!isConditional(o))
      continue;
    const xf::Facts &data = facts.zeros.facts(o.value);
    bool isInfinite = o.kind == xf::Obligation::FiniteElements;
    StringRef extreme = isInfinite ? "infinite" : "zero";
    Finding finding{o.site,
                    divides(o) + ", which is " + extreme.str() + " on an open set of activations" +
                        (isInfinite || data.why.empty() ? "" : " (" + data.why + ")"),
                    rules::ConditionalObligation};
    finding.notes.push_back({o.value.getDefiningOp(), "what it divides by is made here"});
    finding.notes.push_back({o.site, "it rests on: " + o.lemma + "; where the divisor is " +
                                         extreme.str() +
                                         " the patch takes 1 in its place, is not exact, and "
                                         "says so at run time"});
    finding.advice = otherPlan(isFree);
    if (finding.advice.empty())
      finding.advice = "put an activation before it that is zero on a null set only (gelu, silu), "
                       "or a trainable bias after it";
    found.push_back(std::move(finding));
  }
}

//===----------------------------------------------------------------------===//
// fragile-plan
//===----------------------------------------------------------------------===//

void WarningSearch::findFragile() {
  std::string fragility = costOf(plan).fragility;
  if (fragility.empty())
    return;
  Operation *at = nullptr;
  for (Operation *op : plan.patchedOps())
    if (!at &&
        cast<xf::AssignableOpInterface>(op).getObligation() == xf::Obligation::NonzeroElements)
      at = op;
  Finding finding{at, "the patch is exact here, and fragile in another program: " + fragility,
                  rules::FragilePlan};
  finding.advice = otherPlan([](const PlanCandidate &c) { return c.cost.fragility.empty(); });
  if (finding.advice.empty())
    finding.advice = "give the block a trainable bias or matrix after this op, or a matrix of its "
                     "own before its norm";
  found.push_back(std::move(finding));
}

//===----------------------------------------------------------------------===//
// output-only
//===----------------------------------------------------------------------===//

void WarningSearch::findOutputOnly() {
  if (group.verdict->kind != VerdictKind::OutputOnly)
    return;
  Operation *first = plan.outputs.front().first();
  Finding finding{first, group.verdict->remark, rules::OutputOnly};
  if (!StringRef(finding.message).starts_with("the patch is exact, but"))
    finding.message = "the patch is exact, but inside the block the two runs differ";
  InputCut cut = search.findInputCut(plan);
  if (!cut.exists)
    finding.notes = witnessNotes(facts, cut.witness);
  if (plan.runs == 1)
    finding.advice = otherPlan([](const PlanCandidate &c) { return !c.outputOnly; });
  if (finding.advice.empty())
    finding.advice = "where equal internals matter, give this path a trainable matrix of its own";
  found.push_back(std::move(finding));
}

std::vector<Finding> WarningSearch::find() {
  if (plan.isEmpty())
    return {};
  findConditional();
  findFragile();
  findOutputOnly();
  return std::move(found);
}

std::vector<Finding> ctxc::findWarnings(const VerdictGroup &group) {
  return WarningSearch(group).find();
}
