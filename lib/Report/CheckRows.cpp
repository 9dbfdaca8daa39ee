#include "CheckRows.h"
#include "ctxc/Analysis/Sites.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ctxc;

static PatchRow patchRow(const BlockPlan &plan, Operation *op) {
  bool isRank1 = cast<xf::AssignableOpInterface>(op).getChangeForm() == xf::ChangeForm::Rank1;
  std::string lemma;
  for (const PlanObligation &o : plan.obligations)
    if (o.site == op)
      lemma = o.lemma;
  return {Sites::name(op), isRank1 ? "rank " + std::to_string(plan.runs) : "vector", lemma};
}

static std::string condition(const PlanObligation &o) {
  switch (o.kind) {
  case xf::Obligation::None:
    return "nothing";
  case xf::Obligation::NonzeroVector:
    return "its input is not zero";
  case xf::Obligation::NonzeroElements:
    return "no entry of its input is zero";
  case xf::Obligation::NonzeroSum:
    return "its weights do not sum to zero";
  case xf::Obligation::FiniteElements:
    return "no entry of its divisor is infinite";
  case xf::Obligation::SameSelection:
    return "both runs select the same";
  }
  llvm_unreachable("an obligation of no known kind");
}

static std::string holds(const PlanObligation &o) {
  switch (o.kind == xf::Obligation::None ? xf::Zeros::Never : o.likelihood) {
  case xf::Zeros::Never:
    return "always";
  case xf::Zeros::NullSet:
    return "almost everywhere";
  case xf::Zeros::OpenSet:
    return "not everywhere; checked at run time";
  }
  llvm_unreachable("zeros of no known kind");
}

CheckRows ctxc::checkRows(const Verdict &verdict) {
  CheckRows rows;
  const BlockPlan &plan = verdict.plan;
  if (plan.isEmpty())
    return rows;
  for (Operation *op : plan.inputSites)
    rows.input.push_back(patchRow(plan, op));
  for (Operation *op : plan.patchedOps())
    if (plan.outputOf(op))
      rows.output.push_back(patchRow(plan, op));
  for (const PlanObligation &o : plan.obligations) {
    std::string name = Sites::name(o.site);
    if (auto param = o.value.getDefiningOp<xf::ParamOp>())
      rows.obligations.push_back(
          {param.getName().str(), "no entry of it is zero", holds(o), o.lemma});
    else
      rows.obligations.push_back({name, condition(o), holds(o), o.lemma});
  }
  return rows;
}

std::vector<PlanRow> ctxc::planRows(const VerdictGroup &group) {
  std::vector<PlanRow> rows;
  if (!group.verdict->isSuccess())
    return rows;
  SmallVector<Operation *> chosen = group.verdict->plan.patchedOps();
  const PlanOptions &options = *group.options;
  bool isMeasured = options.measure && (options.objective == Objective::LeastNorm ||
                                        options.objective == Objective::LeastDrift);
  for (PlanCandidate &candidate : enumeratePlans(group)) {
    if (isMeasured)
      (void)options.measure(group.block, options, candidate); // a failure has given a warning
    PlanRow row;
    for (Operation *op : candidate.plan.patchedOps())
      row.parameters.push_back(Sites::name(op));
    row.kind = candidate.outputOnly ? VerdictKind::OutputOnly : VerdictKind::Controllable;
    row.cost = candidate.cost;
    row.chosen = candidate.plan.patchedOps() == chosen;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<JointMatrix> ctxc::jointMatricesOf(const VerdictGroup &group) {
  const bool isModel = !group.ops.empty();
  return findJointMatrices({isModel ? group.layers.front() : 0,
                            isModel ? group.ops.front() : xf::LayerOp(), group.block, group.verdict,
                            group.options});
}

std::string ctxc::costText(const PlanRow &row) {
  const PlanCost &cost = row.cost;
  auto count = [](int64_t n, StringRef one, StringRef many) {
    return std::to_string(n) + " " + (n == 1 ? one : many).str();
  };
  std::string text =
      count(cost.patches, "patch", "patches") + ", " + count(cost.numbers, "number", "numbers");
  if (cost.vectorDivisions || cost.elementDivisions)
    text += "; divides by ";
  if (cost.vectorDivisions)
    text += count(cost.vectorDivisions, "vector", "vectors");
  if (cost.elementDivisions)
    text +=
        (cost.vectorDivisions ? " and " : "") + count(cost.elementDivisions, "entry", "entries");
  if (cost.norm && cost.drift)
    llvm::raw_string_ostream(text)
        << llvm::format("; norm %.3g, drift %.3g", *cost.norm, *cost.drift);
  if (row.kind == VerdictKind::OutputOnly)
    text += "; output-only";
  return text + (cost.fragility.empty() ? "" : "; fragile");
}
