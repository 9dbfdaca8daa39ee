// Controllable and output-only claims by structure (Theorem 3): F meets every path to what G
// reads, G's chain is solved link by link, and each lemma instance has its condition.
#include "Claims.h"
#include "dialects/XF/GatheredSite.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

namespace {
class SuccessChecker {
public:
  explicit SuccessChecker(Subject &subject) : s(subject), flow(subject.flow) {}

  std::optional<ResolvedPlan> check();

private:
  bool resolve();
  bool resolveChain(const Output &output, ResolvedOutput &resolved);
  void checkInstances(StringRef what, const std::vector<Instance> &found,
                      const std::vector<Instance> &expected);
  void checkSites();
  void checkOutput(const Output &output, const ResolvedOutput &resolved);
  void checkOrder();
  void checkCut();
  void checkOpenPath(const Values &differing);
  void checkSelections();
  Instance patchOf(Operation *op, xf::ControlRole role) const;
  Instance needing(Operation *op, StringRef lemma, xf::Obligation needs, Value of) const;
  Values patchedForOutputs() const;
  Values cutAndGoals() const;
  std::string name(Operation *op) const { return s.text.name(op->getResult(0)).str(); }

  Subject &s;
  const Flow &flow;
  ResolvedPlan plan;
};
} // namespace

//===----------------------------------------------------------------------===//
// Names to values
//===----------------------------------------------------------------------===//

bool SuccessChecker::resolveChain(const Output &output, ResolvedOutput &resolved) {
  SmallVector<Value> values;
  for (const std::string &name : output.chain)
    if (Value value = s.value("chain", name))
      values.push_back(value);
  if (output.chain.empty())
    s.wrong("chain: is empty; expected the patched op's result and what leads to the goal");
  else
    s.expect("goal", output.goal, output.chain.back());
  if (values.size() != output.chain.size() || values.empty())
    return false;
  resolved.site = values.front().getDefiningOp();
  resolved.goal = values.back();
  if (output.split == "least-norm")
    resolved.split = xf::Split::LeastNorm;
  if (!resolved.site) {
    s.wrong("chain: " + output.chain.front() + " is an input of the block, not a patched op");
    return false;
  }
  for (size_t i = 1; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    unsigned operand = 0;
    while (op && operand < op->getNumOperands() && op->getOperand(operand) != values[i - 1])
      ++operand;
    if (!op || operand == op->getNumOperands()) {
      s.wrong("chain: " + output.chain[i] + " does not read " + output.chain[i - 1] +
              ", so that a link is missing between them");
      return false;
    }
    resolved.links.push_back({op, operand});
  }
  for (const Instance &patch : output.patches) {
    Operation *op = s.op("patches", patch.op);
    if (!op)
      return false;
    if (op != resolved.site)
      resolved.matrix = op;
  }
  return true;
}

bool SuccessChecker::resolve() {
  bool good = true;
  for (const Instance &patch : s.claim.cut) {
    Operation *op = s.op("cut", patch.op);
    good &= op != nullptr;
    plan.cut.push_back(op);
  }
  for (const Output &output : s.claim.outputs) {
    plan.outputs.emplace_back();
    good &= resolveChain(output, plan.outputs.back());
  }
  return good;
}

//===----------------------------------------------------------------------===//
// Instances of lemmas
//===----------------------------------------------------------------------===//

Instance SuccessChecker::needing(Operation *op, StringRef lemma, xf::Obligation needs,
                                 Value of) const {
  Instance instance;
  instance.op = name(op);
  instance.lemma = ruleOfLemma(lemma);
  instance.needs = textOf(needs).str();
  if (needs != xf::Obligation::None) {
    instance.of = s.text.name(of).str();
    instance.fails = textOf(flow.failure(needs, of)).str();
  }
  return instance;
}

/// Compares an instance with what the op says about its patch.
Instance SuccessChecker::patchOf(Operation *op, xf::ControlRole role) const {
  auto site = cast<xf::AssignableOpInterface>(op);
  Instance instance =
      needing(op, site.getLemma(role), site.getObligation(), site.getDataOperand().get());
  if (xf::ParamOp param = parameterOf(op))
    instance.parameter = param.getName().str();
  instance.change = site.getChangeForm() == xf::ChangeForm::Rank1 ? "rank1" : "delta";
  return instance;
}

/// Checks the instances of one list, one by one and in order.
void SuccessChecker::checkInstances(StringRef what, const std::vector<Instance> &found,
                                    const std::vector<Instance> &expected) {
  for (size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    if (i >= found.size()) {
      s.wrong(what + ": the condition of " + expected[i].op + " is missing: " + expected[i].needs +
              " of " + expected[i].of);
      continue;
    }
    if (i >= expected.size()) {
      s.wrong(what + ": " + found[i].op + " is one too many");
      continue;
    }
    const Instance &f = found[i], &e = expected[i];
    std::string at = (what + " " + e.op + ": ").str();
    s.expect(at + "op", f.op, e.op);
    s.expect(at + "parameter", f.parameter, e.parameter);
    s.expect(at + "change", f.change, e.change);
    s.expect(at + "lemma", f.lemma, e.lemma);
    s.expect(at + "needs", f.needs, e.needs);
    s.expect(at + "of", f.of, e.of);
    s.expect(at + "fails", f.fails, e.fails);
  }
}

//===----------------------------------------------------------------------===//
// Sites and chains
//===----------------------------------------------------------------------===//

void SuccessChecker::checkSites() {
  llvm::DenseSet<Operation *> seen;
  auto check = [&](StringRef what, Operation *op) {
    if (std::string why = flow.refusal(op); !why.empty())
      s.wrong(what + ": " + name(op) + " " + why + "; expected an op that may be patched");
    if (!seen.insert(op).second)
      s.wrong(what + ": " + name(op) + " is patched twice");
  };
  for (Operation *op : plan.cut)
    check("cut", op);
  for (const ResolvedOutput &output : plan.outputs) {
    if (output.matrix)
      check("patches", output.matrix);
    check("chain", output.site);
  }
}

void SuccessChecker::checkOutput(const Output &output, const ResolvedOutput &resolved) {
  auto site = dyn_cast<xf::AssignableOpInterface>(resolved.site);
  if (!site)
    return; // checkSites has reported it
  std::vector<Instance> patches, divisors;
  bool isChoice = false;
  if (resolved.matrix) {
    if (site.findNormMatrix() != resolved.matrix)
      s.wrong("patches: " + name(resolved.matrix) + " does not share the change of " +
              name(resolved.site) + " through a norm between them");
    else
      patches.push_back(patchOf(resolved.matrix, xf::ControlRole::Output));
  }
  patches.push_back(patchOf(resolved.site, xf::ControlRole::Output));
  checkInstances("patches", output.patches, patches);

  Values fromSite = flow.forward({resolved.site->getResult(0)});
  for (const ResolvedOutput::Link &link : resolved.links) {
    std::string why = flow.linkBreak(link.op, link.operand);
    if (!why.empty())
      s.wrong("chain: " + name(link.op) + " cannot be solved: " + why);
    bool isPart = xf::isPartOfResult(link.op, link.operand);
    for (OpOperand &other : link.op->getOpOperands())
      if (!isPart && other.getOperandNumber() != link.operand && fromSite.contains(other.get()))
        s.wrong("chain: the patch also reaches " + name(link.op) + " by " +
                s.text.name(other.get()) + ", which has to be known");
    auto solvable = dyn_cast<xf::SolvableOpInterface>(link.op);
    std::string reason;
    isChoice |= solvable && solvable.isUnderdetermined(link.operand);
    if (solvable && solvable.getSolvability(link.operand, reason) == xf::Solvability::Conditional)
      for (const xf::LinkCondition &c : solvable.getConditions(link.operand, resolved.split))
        divisors.push_back(needing(link.op, c.lemma, c.kind, link.op->getOperand(c.operand)));
  }
  if (!resolved.links.empty() && xf::isDirection(resolved.links.back().op))
    s.wrong("chain: ends in " + name(resolved.links.back().op) +
            ", which brings a direction to its target, and no length");
  checkInstances("divisors", output.divisors, divisors);
  if (isChoice != !output.split.empty())
    s.wrong(isChoice ? Twine("split: found none, expected even or least-norm: the chain passes a "
                             "mixture")
                     : "split: found '" + Twine(output.split) +
                           "', expected none: the chain leaves no choice");
}

/// Checks that each output can be solved for when its turn comes, and that no later patch changes
/// it.
void SuccessChecker::checkOrder() {
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const ResolvedOutput &output = plan.outputs[i];
    for (size_t j = i + 1; j < plan.outputs.size(); ++j) {
      Values later = flow.forward({plan.outputs[j].first()->getResult(0)});
      // Another part of what is put together there is no other value of this part.
      bool waits = output.goal != plan.outputs[j].goal && later.contains(output.goal);
      for (Value operand : output.first()->getOperands())
        waits |= later.contains(operand);
      for (const ResolvedOutput::Link &link : output.links)
        for (OpOperand &other : link.op->getOpOperands())
          waits |= other.getOperandNumber() != link.operand &&
                   !xf::isPartOfResult(link.op, link.operand) && later.contains(other.get());
      if (waits)
        s.wrong("outputs: the patch of " + name(output.site) + " waits for that of " +
                name(plan.outputs[j].site) + ", which comes after it");
    }
  }
}

//===----------------------------------------------------------------------===//
// The cut
//===----------------------------------------------------------------------===//

Values SuccessChecker::patchedForOutputs() const {
  Values values;
  for (const ResolvedOutput &output : plan.outputs)
    for (Operation *op : {output.site, output.matrix})
      if (op)
        values.insert(op->getResult(0));
  return values;
}

/// The values that have their full-run value, by the claim or whatever is patched.
Values SuccessChecker::cutAndGoals() const {
  Values values = flow.constants();
  for (Operation *op : plan.cut)
    values.insert(op->getResult(0));
  for (const ResolvedOutput &output : plan.outputs)
    values.insert(output.goal);
  return values;
}

void SuccessChecker::checkCut() {
  Values patched = patchedForOutputs(), afterG = flow.forward(patched);
  for (Operation *op : plan.cut)
    if (afterG.contains(op->getResult(0)))
      s.wrong("cut: " + name(op) + " reads what is patched for the output");

  // All values that may differ between the full run and the patched run.
  Values starts = flow.sources();
  starts.insert(patched.begin(), patched.end());
  Values differing = flow.forward(starts, cutAndGoals());
  for (auto [i, output] : llvm::enumerate(flow.outputs()))
    if (differing.contains(output))
      s.wrong("cut: the context, or a patch, reaches output " + Twine(i) + ", " +
              s.text.name(output) + ", past the cut and the goals of the chains");

  bool inputsDiffer = false;
  for (const ResolvedOutput &output : plan.outputs) {
    Operation *first = output.first();
    if (flow.inContextualPart(first) || !isa<xf::AssignableOpInterface>(first))
      continue;
    for (Value value : xf::valuesBefore(cast<xf::AssignableOpInterface>(first)))
      if (differing.contains(value)) {
        inputsDiffer = true;
        if (s.claim.verdict == "controllable")
          s.wrong("cut: the context reaches " + s.text.name(value) + ", which " + name(first) +
                  " reads, past the cut");
      }
  }
  if (s.claim.verdict != "output-only")
    return;
  if (!inputsDiffer)
    s.wrong("verdict: found output-only, expected controllable: the cut meets every path to what "
            "the patches of the output read");
  else
    checkOpenPath(differing);
}

/// For output-only: a path from the context to what G reads that the cut does not meet.
void SuccessChecker::checkOpenPath(const Values &differing) {
  const Names &open = s.claim.open;
  SmallVector<Value> path;
  for (const std::string &name : open)
    if (Value value = s.value("open", name))
      path.push_back(value);
  if (path.size() != open.size())
    return;
  if (path.empty())
    return s.wrong("open: found no path, expected one on which the context passes the cut");
  bool read = llvm::any_of(plan.outputs, [&](const ResolvedOutput &output) {
    auto site = dyn_cast<xf::AssignableOpInterface>(output.first());
    return site && llvm::is_contained(xf::valuesBefore(site), path.back());
  });
  if (!flow.sources().contains(path.front()) && !patchedForOutputs().contains(path.front()))
    s.wrong("open: " + open.front() + " is not where the context comes in");
  if (!read)
    s.wrong("open: " + open.back() + " is not what a patched op of the output reads");
  for (size_t i = 0; i < path.size(); ++i) {
    Operation *op = path[i].getDefiningOp();
    if (i && !(op && llvm::is_contained(op->getOperands(), path[i - 1])))
      s.wrong("open: " + open[i] + " does not read " + open[i - 1]);
    if (!differing.contains(path[i]))
      s.wrong("open: " + open[i] + " is settled by the cut or a goal");
  }
}

/// Choices of experts that depend on the context and are the same in both runs by the cut.
void SuccessChecker::checkSelections() {
  Values starts = flow.sources(), cut = flow.constants();
  for (Operation *op : plan.cut)
    cut.insert(op->getResult(0));
  Values differing = flow.forward(starts, cut);
  for (Value value : flow.forward(patchedForOutputs()))
    differing.insert(value);
  std::vector<Instance> expected;
  for (Operation &op : flow.body().without_terminator())
    for (Value result : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (type && type.getElementType().isInteger() && flow.depends(result) &&
          !differing.contains(result))
        expected.push_back(
            needing(&op, "input controllability of MLPs", xf::Obligation::SameSelection, result));
    }
  checkInstances("selections", s.claim.selections, expected);
}

std::optional<ResolvedPlan> SuccessChecker::check() {
  if (!resolve())
    return std::nullopt;
  bool dependsAtAll =
      llvm::any_of(flow.outputs(), [&](Value output) { return flow.depends(output); });
  if (plan.outputs.empty() && dependsAtAll) {
    s.wrong("outputs: found none, expected a chain to each output that the context reaches");
    return std::nullopt;
  }
  std::string theorem = !dependsAtAll                      ? "nothing-to-absorb"
                        : s.claim.verdict == "output-only" ? "one-patch-block"
                        : plan.cut.empty()                 ? "parallel-block"
                                                           : "unified";
  s.expect("theorem", s.claim.theorem, theorem);
  if (!dependsAtAll && (!plan.cut.empty() || !plan.outputs.empty()))
    s.wrong("outputs: the context reaches no output, so that there is nothing to patch");
  Names parameters;
  for (const Instance &patch : s.claim.cut)
    parameters.push_back(patch.parameter);
  for (const Output &output : s.claim.outputs)
    for (const Instance &patch : output.patches)
      parameters.push_back(patch.parameter);
  s.expect("parameters", s.claim.parameters, parameters);
  checkSites();
  s.expectOrder(
      "cut", llvm::map_to_vector(plan.cut, [](Operation *op) { return Value(op->getResult(0)); }));
  std::vector<Instance> cut;
  for (auto [op, claimed] : llvm::zip_equal(plan.cut, s.claim.cut))
    cut.push_back(isa<xf::AssignableOpInterface>(op) ? patchOf(op, xf::ControlRole::Input)
                                                     : claimed);
  checkInstances("cut", s.claim.cut, cut);
  for (auto [output, resolved] : llvm::zip_equal(s.claim.outputs, plan.outputs))
    checkOutput(output, resolved);
  checkParts(s, plan);
  checkOrder();
  checkCut();
  checkSelections();
  return plan;
}

std::optional<ResolvedPlan> proof::checkSuccess(Subject &subject) {
  return SuccessChecker(subject).check();
}
