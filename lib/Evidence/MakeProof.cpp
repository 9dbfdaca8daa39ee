#include "ctxc/Evidence/MakeProof.h"
#include "ReachableSet.h"
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/ModelFlow.h"
#include "ctxc/Analysis/OutputControl.h"
#include "ctxc/Analysis/OutputSpan.h"
#include "ctxc/Proof/Body.h"
#include "ctxc/Proof/CheckProof.h"
#include "ctxc/Support/Error.h"
#include "dialects/XF/GatheredSite.h"

using namespace mlir;
using namespace ctxc;
using proof::BlockText;
using proof::Claim;
using proof::Instance;

namespace {
/// Writes the claim of one case of a group.
class ClaimMaker {
public:
  ClaimMaker(const Verdict &verdict, const PlanOptions &options, const proof::Structure &structure,
             StringRef sitesName)
      : verdict(verdict), plan(verdict.plan), options(options), structure(structure),
        sitesName(sitesName), text(structure.block), graph(structure.block),
        zeros(structure.block, structure.layer), context(graph, zeros, options.inputsAreSources),
        sites(graph, zeros, options.bindings, options.scope) {}

  llvm::Expected<Claim> make();

private:
  void describe();
  void describeSuccess();
  llvm::Error describeRejection();
  void describeUndecided();

  Instance instanceOf(const PlanObligation &obligation) const;
  Instance patchOf(Operation *op) const;
  void findOpenPath();
  void findBarriers(ArrayRef<Value> ends, const Moved &moved);
  std::optional<proof::Target> findTarget(const proof::Cause &cause, std::string &failure) const;
  std::vector<std::pair<std::string, double>> scalings() const;
  std::string name(Value value) const { return text.name(value).str(); }

  const Verdict &verdict;
  const BlockPlan &plan;
  const PlanOptions &options;
  const proof::Structure &structure;
  StringRef sitesName;
  BlockText text;
  BlockGraph graph;
  ZeroRange zeros;
  ContextDependence context;
  Sites sites;
  Claim claim;
};
} // namespace

void ClaimMaker::describe() {
  xf::BlockOp block = structure.block;
  claim.block = block.getSymName().str();
  claim.layers = proof::layersText(structure);
  claim.digest = proof::digestOf(structure, text);
  claim.text.assign(text.lines().begin(), text.lines().end());
  claim.frozen.assign(structure.frozen.begin(), structure.frozen.end());
  claim.shared.assign(structure.shared.begin(), structure.shared.end());
  const InputSources &inputs = options.inputsAreSources;
  claim.inputsDepend = bool(inputs);
  for (BlockArgument input : graph.getBlock().getBody().getArguments())
    if (inputs && !inputs.contains(input.getArgNumber()))
      claim.equalInputs.push_back(name(input));
  claim.verdict = stringify(verdict.kind).str();
}

//===----------------------------------------------------------------------===//
// Controllable, output-only
//===----------------------------------------------------------------------===//

static StringRef textOf(xf::Obligation kind) {
  switch (kind) {
  case xf::Obligation::None:
    return "nothing";
  case xf::Obligation::NonzeroVector:
    return "nonzero-vector";
  case xf::Obligation::NonzeroElements:
    return "nonzero-elements";
  case xf::Obligation::NonzeroSum:
    return "nonzero-sum";
  case xf::Obligation::FiniteElements:
    return "finite-elements";
  case xf::Obligation::SameSelection:
    return "same-selection";
  }
  llvm_unreachable("an obligation of no known kind");
}

static StringRef textOf(xf::Zeros likelihood) {
  return likelihood == xf::Zeros::Never     ? "never"
         : likelihood == xf::Zeros::NullSet ? "null-set"
                                            : "open-set";
}

Instance ClaimMaker::instanceOf(const PlanObligation &obligation) const {
  Instance instance;
  instance.op = name(obligation.site->getResult(0));
  instance.lemma = proof::ruleOfLemma(obligation.lemma);
  instance.needs = textOf(obligation.kind).str();
  if (obligation.kind != xf::Obligation::None) {
    instance.of = name(obligation.value);
    instance.fails = textOf(obligation.likelihood).str();
  }
  return instance;
}

Instance ClaimMaker::patchOf(Operation *op) const {
  SmallVector<Operation *> ops = plan.patchedOps();
  Instance instance = instanceOf(plan.obligations[llvm::find(ops, op) - ops.begin()]);
  instance.parameter = Sites::name(op);
  bool isRank1 = cast<xf::AssignableOpInterface>(op).getChangeForm() == xf::ChangeForm::Rank1;
  instance.change = isRank1 ? "rank1" : "delta";
  return instance;
}

/// A path on which the context reaches an op that is patched for the output.
void ClaimMaker::findOpenPath() {
  BlockGraph::Set sources = context.sources(), settled = context.constants();
  for (Operation *op : plan.inputSites)
    settled.set(graph.vertex(op));
  for (const OutputPatch &output : plan.outputs) {
    for (Operation *op : {output.site, output.normMatrix})
      if (op)
        sources.set(graph.vertex(op));
    settled.set(graph.vertex(output.goal));
  }
  for (const OutputPatch &output : plan.outputs) {
    auto site = cast<xf::AssignableOpInterface>(output.first());
    if (sites.inContextualPart(site))
      continue;
    for (Value value : xf::valuesBefore(site)) {
      SmallVector<unsigned> path = graph.path(sources, graph.vertex(value), settled);
      for (unsigned vertex : path) {
        Operation *op = graph.op(vertex);
        xf::BlockOp block = structure.block;
        claim.open.push_back(
            name(op ? Value(op->getResult(0)) : Value(block.getBody().getArgument(vertex))));
      }
      if (!path.empty())
        return;
    }
  }
}

void ClaimMaker::describeSuccess() {
  claim.theorem = plan.isEmpty()                            ? "nothing-to-absorb"
                  : verdict.kind == VerdictKind::OutputOnly ? "one-patch-block"
                  : plan.inputSites.empty()                 ? "parallel-block"
                                                            : "unified";
  for (Operation *op : plan.inputSites)
    claim.cut.push_back(patchOf(op));
  size_t next = plan.patchedOps().size();
  std::vector<proof::Output> outputs;
  for (const OutputPatch &output : plan.outputs) {
    proof::Output &written = outputs.emplace_back();
    written.chain.push_back(name(output.site->getResult(0)));
    if (output.normMatrix)
      written.patches.push_back(patchOf(output.normMatrix));
    written.patches.push_back(patchOf(output.site));
    for (const ChainLink &link : output.links) {
      written.chain.push_back(name(link.op->getResult(0)));
      auto solvable = cast<xf::SolvableOpInterface>(link.op);
      if (solvable.isUnderdetermined(link.operand))
        written.split = plan.split == xf::Split::LeastNorm ? "least-norm" : "even";
      std::string reason;
      if (solvable.getSolvability(link.operand, reason) == xf::Solvability::Conditional)
        for (size_t end = next + solvable.getConditions(link.operand, plan.split).size();
             next < end; ++next)
          written.divisors.push_back(instanceOf(plan.obligations[next]));
    }
    written.goal = written.chain.back();
  }
  for (const Instance &patch : claim.cut)
    claim.parameters.push_back(patch.parameter);
  if (!plan.isEmpty()) {
    SmallVector<unsigned> order = *plan.solvingOrder();
    for (unsigned i : order) {
      for (const Instance &patch : outputs[i].patches)
        claim.parameters.push_back(patch.parameter);
      claim.outputs.push_back(std::move(outputs[i]));
    }
  }
  for (; next < plan.obligations.size(); ++next)
    claim.selections.push_back(instanceOf(plan.obligations[next]));
  if (verdict.kind == VerdictKind::OutputOnly)
    findOpenPath();
}

//===----------------------------------------------------------------------===//
// Rejected
//===----------------------------------------------------------------------===//

void ClaimMaker::findBarriers(ArrayRef<Value> ends, const Moved &moved) {
  for (Value value : llvm::reverse(ends)) {
    const xf::Facts &facts = zeros.facts(value);
    proof::Barrier barrier;
    barrier.value = name(value);
    Value normal = xf::findGramVector(value.getDefiningOp());
    if (facts.length) {
      barrier.image = "ball";
      barrier.radius = facts.length;
    } else if (facts.bound || facts.floor || facts.ceiling) {
      barrier.image = "box";
      if (facts.bound) {
        barrier.low = -*facts.bound;
        barrier.high = facts.bound;
      }
      if (facts.floor)
        barrier.low = std::max(barrier.low.value_or(*facts.floor), *facts.floor);
      if (facts.ceiling)
        barrier.high = std::min(barrier.high.value_or(*facts.ceiling), *facts.ceiling);
    } else if (facts.total) {
      barrier.image = "plane";
      barrier.total = facts.total;
    } else if (normal && isHalfSpace(moved, value)) {
      barrier.image = "half-space";
      barrier.normal = name(normal);
    }
    claim.behind.push_back(std::move(barrier));
  }
}

/// What to scale up, the likeliest first: nothing, the contextual part's parameters (the
/// last is nearest to the residual stream), the context, the other parameters.
std::vector<std::pair<std::string, double>> ClaimMaker::scalings() const {
  std::vector<std::string> own, others;
  xf::BlockOp block = structure.block;
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>()) {
    bool isOwn = llvm::any_of(param->getUsers(),
                              [&](Operation *user) { return sites.inContextualPart(user); });
    auto &names = isOwn ? own : others;
    if (!llvm::is_contained(names, param.getName()))
      names.push_back(param.getName().str());
  }
  std::vector<std::pair<std::string, double>> result{{"", 1}};
  for (double factor : {16.0, 256.0}) {
    for (const std::string &name : llvm::reverse(own))
      result.push_back({name, factor});
    result.push_back({"context", factor});
  }
  for (double factor : {16.0, 1.0 / 16})
    for (const std::string &name : others)
      result.push_back({name, factor});
  return result;
}

/// Further digits would be rounding errors.
static double toSixDigits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return std::strtod(text, nullptr);
}

std::optional<proof::Target> ClaimMaker::findTarget(const proof::Cause &cause,
                                                    std::string &failure) const {
  constexpr double clear = 0.3, enough = 1e-3; // fractions of what the context changes
  std::optional<proof::Target> best;
  double bestShare = enough;
  int64_t numbers = 0; // large blocks behave alike for all seeds
  xf::BlockOp block = structure.block;
  block.walk([&](xf::ParamOp param) {
    numbers += cast<RankedTensorType>(param.getType()).getNumElements();
  });
  for (const auto &[scaled, factor] : scalings())
    for (int64_t seed = 1; seed <= (numbers > 200000 ? 1 : 3); ++seed) {
      proof::Cause tried = cause;
      tried.target = {seed, scaled, factor, 0};
      auto found = proof::distanceBeyondReach(structure, claim, sitesName, tried);
      if (!found) {
        failure = llvm::toString(found.takeError());
        continue;
      }
      double share = found->distance / found->change;
      if (!(share > bestShare))
        continue;
      bestShare = share;
      best = tried.target;
      best->distance = toSixDigits(found->distance);
      if (share >= clear)
        return best;
    }
  return best;
}

llvm::Error ClaimMaker::describeRejection() {
  xf::BlockOp block = structure.block;
  if (std::string why = proof::tooLargeToReject(structure, proof::CheckOptions()); !why.empty())
    return makeError(proof::titleOf(structure) + ": a rejection is proven in numbers, and " + why +
                     "; make it narrower");
  needReference(block);
  Moved moved(graph, sites);
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
    if (llvm::any_of(param->getUsers(),
                     [&](Operation *user) { return moved.moves(user, param.getResult()); }) &&
        !llvm::is_contained(claim.patchable, param.getName()))
      claim.patchable.push_back(param.getName().str());
  SampleOptions sampling;
  sampling.inputsAreSources = options.inputsAreSources;
  auto weights = randomWeights(sampling.seed);
  SmallVector<Value> ends;
  auto reached = reachableOutputs(block, moved, zeros, randomSample(block, sampling),
                                  {*weights, structure.layer}, &ends);
  if (!reached)
    return reached.takeError();
  findBarriers(ends, moved);

  std::string failure;
  auto add = [&](std::string rule, std::vector<int64_t> outputs) {
    proof::Cause cause{std::move(rule), std::move(outputs), {}};
    if (cause.rule.empty())
      cause.rule = proof::ruleOfBarriers(structure, claim, sitesName, cause.outputs);
    std::optional<proof::Target> target = findTarget(cause, failure);
    if (!target)
      return;
    cause.target = *target;
    claim.causes.push_back(std::move(cause));
  };
  std::vector<int64_t> all;
  for (auto [i, output] : llvm::enumerate(graph.yield()->getOperands())) {
    all.push_back(i);
    if (context.depends(output))
      add("", {int64_t(i)});
  }
  for (const OutputSpan &span : findOutputSpans(graph, moved))
    if (claim.causes.empty())
      add(rules::FewVectors.str(), {span.outputs.begin(), span.outputs.end()});
  if (claim.causes.empty())
    add("", all);
  if (!claim.causes.empty())
    return llvm::Error::success();
  return makeError(proof::titleOf(structure) +
                   ": is rejected, and no weights and context were found that show it" +
                   (failure.empty() ? "" : ": " + failure));
}

//===----------------------------------------------------------------------===//
// Undecided
//===----------------------------------------------------------------------===//

void ClaimMaker::describeUndecided() {
  claim.missing = verdict.causes.front().rule.str();
  BlockGraph::Set stops = graph.none();
  for (Value output : graph.yield()->getOperands())
    if (context.depends(output))
      for (const ChainBreak &stop : findOutputChains(graph, sites, zeros, output).breaks)
        if (!stop.isSite)
          stops.set(graph.vertex(stop.op));
  for (unsigned vertex : stops.set_bits())
    claim.stops.push_back(name(graph.op(vertex)->getResult(0)));
}

llvm::Expected<Claim> ClaimMaker::make() {
  describe();
  switch (verdict.kind) {
  case VerdictKind::Controllable:
  case VerdictKind::OutputOnly:
    describeSuccess();
    break;
  case VerdictKind::Rejected:
    if (llvm::Error error = describeRejection())
      return std::move(error);
    break;
  case VerdictKind::Undecided:
    describeUndecided();
    break;
  }
  return std::move(claim);
}

llvm::Expected<proof::Proof> ctxc::makeProof(ModuleOp module, ArrayRef<VerdictGroup> groups,
                                             const ModelOptions &options) {
  proof::Proof proof;
  proof.startLayer = options.startLayer;
  proof.sites = options.scope == SiteScope::All ? "all" : "mlp";
  if (auto models = module.getOps<xf::ModelOp>(); !models.empty()) {
    ModelFlow flow(*models.begin(), options.startLayer);
    proof::Body body(module, options.startLayer);
    if (SmallVector<Operation *> sources = flow.sourcesOfLogits(); !sources.empty())
      for (Value value : flow.path(sources.front()))
        proof.past.push_back(body.nameOf(value));
  }
  std::vector<proof::Structure> structures = proof::structuresOf(module, options.startLayer);
  llvm::Error errors = llvm::Error::success();
  for (const VerdictGroup &group : groups)
    for (const VerdictCase &one : group.cases) {
      if (group.verdict->plan.runs > 1 || !one.options->bindings.runs.empty())
        return joinErrors(
            std::move(errors),
            makeError("found a layer that runs several times with the same parameters; "
                      "expected layers that run once, which proofs are about"));
      auto structure = llvm::find_if(structures, [&](const proof::Structure &s) {
        return s.block == group.block && ArrayRef(s.layers) == ArrayRef(one.layers);
      });
      assert(structure != structures.end() && "a case for each structure");
      auto claim = ClaimMaker(*group.verdict, *one.options, *structure, proof.sites).make();
      if (claim)
        proof.claims.push_back(std::move(*claim));
      else
        errors = llvm::joinErrors(std::move(errors), claim.takeError());
    }
  if (errors)
    return std::move(errors);
  return proof;
}
