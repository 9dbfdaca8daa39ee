// The rules by which a plan is chosen, and the verdict that it gives.
#include "ctxc/Planning/Planner.h"
#include "PlanSearch.h"
#include "dialects/XF/Arithmetic.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <map>

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

StringRef ctxc::stringify(Objective objective) {
  switch (objective) {
#define CTXC_OBJECTIVE(NAME, TEXT, HELP)                                                           \
  case Objective::NAME:                                                                            \
    return TEXT;
#include "ctxc/Planning/Objectives.def"
  }
  llvm_unreachable("an objective of no known kind");
}

std::optional<Objective> ctxc::parseObjective(StringRef name) {
  return llvm::StringSwitch<std::optional<Objective>>(name)
#define CTXC_OBJECTIVE(NAME, TEXT, HELP) .Case(TEXT, Objective::NAME)
#include "ctxc/Planning/Objectives.def"
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// The paper's rule
//===----------------------------------------------------------------------===//

/// The first plan by the paper's rule for which `isWanted` is true.
static std::optional<PlanCandidate>
findPaperPlan(const PlanSearch &search, llvm::function_ref<bool(const BlockPlan &)> isWanted) {
  std::optional<BlockPlan> outputOnly;
  for (const Goals &goals : search.goals()) {
    for (const BlockPlan &outputs : search.outputPlans(goals)) {
      for (bool anyCut : {false, true}) {
        BlockPlan plan = outputs;
        if (search.addInputs(plan, anyCut) && isWanted(plan))
          return PlanCandidate{plan};
      }
      if (!outputOnly && search.isOutputOnly(outputs) && isWanted(outputs))
        outputOnly = outputs;
    }
    // An inner value is a goal only where this one cannot be reached.
    if (outputOnly)
      return PlanCandidate{*outputOnly, /*outputOnly=*/true};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// All plans
//===----------------------------------------------------------------------===//

/// The ops that a plan patches, which identify it.
static std::vector<Operation *> keyOf(const BlockPlan &plan) {
  SmallVector<Operation *> ops = plan.patchedOps();
  return {ops.begin(), ops.end()};
}

/// `first`, if there is one, and all others by the numbers that a patch stores; at most `limit`.
static std::vector<PlanCandidate>
listPlans(const PlanSearch &search, const std::optional<PlanCandidate> &first, unsigned limit) {
  std::vector<PlanCandidate> found;
  std::map<std::vector<Operation *>, size_t> seen;
  auto isFragile = [](const BlockPlan &plan) { return !costOf(plan).fragility.empty(); };
  auto add = [&](const BlockPlan &plan, bool outputOnly) {
    auto [known, isNew] = seen.try_emplace(keyOf(plan), found.size());
    if (isNew)
      found.push_back({plan, outputOnly});
    else if (isFragile(found[known->second].plan) && !isFragile(plan))
      found[known->second] = {plan, outputOnly};
  };
  if (first)
    add(first->plan, first->outputOnly);
  // Plans with F come before those without: one set of ops may be found both ways. Of a long chain
  // of sites each inner value is a goal; what patches the same for an outer one was looked at
  // before.
  constexpr unsigned mostTried = 4096;
  unsigned tried = 0;
  SmallVector<BlockPlan> withoutInputs;
  for (const Goals &goals : search.goals()) {
    if (tried > mostTried)
      break;
    for (const BlockPlan &outputs : search.outputPlans(goals)) {
      ++tried;
      for (const BlockPlan &plan : search.withAllInputs(outputs, limit))
        add(plan, /*outputOnly=*/false);
      if (search.isOutputOnly(outputs))
        withoutInputs.push_back(outputs);
    }
  }
  for (const BlockPlan &plan : withoutInputs)
    add(plan, /*outputOnly=*/true);
  for (PlanCandidate &candidate : found) {
    search.addObligations(candidate.plan);
    candidate.cost = costOf(candidate.plan);
  }
  // Equal plans keep their order.
  size_t begin = first ? 1 : 0;
  for (size_t i = begin; i < found.size(); ++i)
    for (size_t j = i; j > begin && found[j].cost.numbers < found[j - 1].cost.numbers; --j)
      std::swap(found[j], found[j - 1]);
  if (found.size() > limit)
    found.resize(limit);
  return found;
}

/// More plans than any block has that is worth a choice.
static constexpr unsigned mostPlans = 64;

static std::optional<PlanCandidate> choosePaper(const PlanSearch &search,
                                                const PlanOptions &options) {
  auto any = [](const BlockPlan &) { return true; };
  std::optional<PlanCandidate> paper = findPaperPlan(search, any);
  // With the naive update the user asked for a fragile plan.
  if (!paper || options.objective == Objective::Paper ||
      options.update == patch::UpdateKind::naive || costOf(paper->plan).fragility.empty())
    return paper;
  auto robust =
      findPaperPlan(search, [](const BlockPlan &plan) { return costOf(plan).fragility.empty(); });
  if (paper->outputOnly || (robust && !robust->outputOnly))
    return robust ? robust : paper;
  // The internals are kept by any plan that keeps them, sooner than given up.
  for (PlanCandidate &other : listPlans(search, std::nullopt, mostPlans))
    if (!other.outputOnly && other.cost.fragility.empty()) {
      other.plan.obligations.clear(); // planBlock() adds them
      return other;
    }
  if (robust)
    robust->avoided = costOf(paper->plan).fragility;
  return robust ? robust : paper;
}

/// The plan of the paper's rule, and all others.
static std::vector<PlanCandidate> enumerate(const PlanSearch &search, const PlanOptions &options,
                                            unsigned limit) {
  return listPlans(search, choosePaper(search, options), limit);
}

/// What speaks against a plan in numbers; empty where nothing does.
static std::string contradiction(xf::BlockOp block, const PlanOptions &options,
                                 const PlanCandidate &candidate) {
  return options.confirm ? options.confirm(block, options, candidate) : "";
}

std::vector<PlanCandidate> ctxc::enumeratePlans(xf::BlockOp block, const PlanOptions &options,
                                                unsigned limit) {
  BlockFacts facts(block, options);
  if (!facts.context.depends(facts.graph.yield()))
    return {};
  std::vector<PlanCandidate> found = enumerate(PlanSearch(facts, options), options, limit);
  llvm::erase_if(found, [&](const PlanCandidate &candidate) {
    return !contradiction(block, options, candidate).empty();
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Whether the plan patches exactly those of `names` that the block has.
static bool patchesJust(const BlockPlan &plan, xf::BlockOp block, ArrayRef<std::string> names) {
  llvm::StringSet<> wanted, patched;
  block.walk([&](xf::ParamOp param) {
    if (llvm::is_contained(names, param.getName()))
      wanted.insert(param.getName());
  });
  for (Operation *op : plan.patchedOps())
    patched.insert(Sites::name(op));
  return wanted.size() == patched.size() &&
         llvm::all_of(wanted, [&](auto &name) { return patched.contains(name.first()); });
}

/// The numbers by which plans are ranked, the first one first; smaller is better.
static std::array<double, 4> rank(const PlanCandidate &candidate, Objective objective) {
  const PlanCost &cost = candidate.cost;
  double numbers = cost.numbers, internals = candidate.outputOnly;
  switch (objective) {
  case Objective::Default:
  case Objective::Paper:
    return {}; // the first of the list
  case Objective::FewestParameters:
    return {double(!cost.fragility.empty()), numbers, double(cost.elementDivisions), internals};
  case Objective::NoDivision:
    return {double(cost.elementDivisions), double(cost.vectorDivisions), internals, numbers};
  case Objective::LeastNorm:
    return {cost.norm.value_or(HUGE_VAL), numbers, internals, 0};
  case Objective::LeastDrift:
    return {cost.drift.value_or(HUGE_VAL), numbers, internals, 0};
  }
  llvm_unreachable("an objective of no known kind");
}

static std::optional<PlanCandidate> choose(const PlanSearch &search, xf::BlockOp block,
                                           const PlanOptions &options) {
  Objective objective = options.objective;
  bool byRule = objective == Objective::Default || objective == Objective::Paper;
  if (byRule && options.parameters.empty())
    return choosePaper(search, options);
  std::vector<PlanCandidate> all = enumerate(search, options, mostPlans);
  if (!options.parameters.empty())
    llvm::erase_if(all, [&](const PlanCandidate &candidate) {
      return !patchesJust(candidate.plan, block, options.parameters);
    });
  if (objective == Objective::LeastNorm || objective == Objective::LeastDrift)
    llvm::erase_if(all, [&](PlanCandidate &candidate) {
      return failed(options.measure(block, options, candidate));
    });
  auto best = std::min_element(all.begin(), all.end(), [&](auto &a, auto &b) {
    return rank(a, objective) < rank(b, objective);
  });
  if (best == all.end())
    return std::nullopt;
  best->plan.obligations.clear(); // planBlock() adds them
  return *best;
}

/// Why no plan patches the parameters that were asked for.
static void explainChoice(const PlanSearch &search, xf::BlockOp block, const PlanOptions &options,
                          Verdict &verdict) {
  std::string wanted;
  for (const std::string &name : options.parameters)
    wanted += (wanted.empty() ? "'" : ", '") + name + "'";
  verdict.causes.push_back(
      {nullptr, "block '" + block.getSymName().str() + "' has no plan that patches just " + wanted,
       rules::NoSuchPlan});
  for (const PlanCandidate &candidate : enumerate(search, options, 8)) {
    std::string names;
    for (Operation *op : candidate.plan.patchedOps())
      names += (names.empty() ? "" : ",") + Sites::name(op);
    verdict.causes.back().notes.push_back({nullptr, "it has one of " + names});
  }
}

static std::string remarkOn(const PlanCandidate &candidate) {
  std::string fragility = costOf(candidate.plan).fragility;
  if (!fragility.empty())
    return "the patch is exact here, and fragile in another program: " + fragility;
  if (!candidate.outputOnly)
    return "";
  std::string where = Sites::name(candidate.plan.outputs.front().site);
  std::string differs = "the patch is exact, but inside the block the two runs differ: ";
  if (!candidate.avoided.empty())
    return differs +
           "the plan that keeps the inside (objective 'paper') is fragile in another "
           "program: " +
           candidate.avoided;
  return differs + "none of the ops it patches stands between the context and what '" + where +
         "' reads";
}

/// By how much a program that rounds to a narrow type leaves a patch inexact; empty for float32.
static std::string remarkOnRoundings(xf::BlockOp block) {
  double roundoff = xf::roundoffOfProgram(block);
  if (roundoff <= std::ldexp(1.0, -24))
    return "";
  return "the patch is exact up to the program's roundings, at most 2^" +
         std::to_string(std::ilogb(roundoff)) + " of each number that it rounds";
}

/// The chosen plan, if nothing speaks against it in numbers, else another of the block's of which
/// that holds. Where there is none, `verdict` says what spoke against the chosen one.
static std::optional<PlanCandidate> confirmed(const PlanSearch &search, xf::BlockOp block,
                                              const PlanOptions &options, PlanCandidate chosen,
                                              Verdict &verdict) {
  search.addObligations(chosen.plan);
  std::string against = contradiction(block, options, chosen);
  if (against.empty())
    return chosen;
  constexpr unsigned most = 16;
  for (PlanCandidate &other : enumerate(search, options, most)) {
    bool isAsked = options.parameters.empty() || patchesJust(other.plan, block, options.parameters);
    if (isAsked && keyOf(other.plan) != keyOf(chosen.plan) &&
        contradiction(block, options, other).empty())
      return other;
  }
  std::string names;
  for (Operation *op : chosen.plan.patchedOps())
    names += (names.empty() ? "'" : ", '") + Sites::name(op) + "'";
  verdict.causes.push_back(
      {chosen.plan.outputs.front().site,
       "whether block '" + block.getSymName().str() +
           "' can take the context into its parameters is undecided: by its "
           "structure a patch of " +
           names + " is exact almost everywhere, and numbers do not confirm it: " + against,
       rules::UnconfirmedPlan});
  verdict.causes.back().advice =
      "look for values that cancel or vanish on the way to what this plan divides by";
  return std::nullopt;
}

/// Why no output depends on the context.
static std::string nothingToAbsorb(const BlockFacts &facts) {
  std::string blind, constant;
  BlockGraph::Set read = facts.graph.contextualOps(), reached = facts.graph.reach(read);
  auto list = [&](std::string &names, Operation *op, const std::string &why) {
    names += (names.empty() ? "" : ", ") + op->getName().getStringRef().str() +
             (why.empty() ? "" : " (" + why + ")");
  };
  for (unsigned v : reached.set_bits()) {
    Operation *op = facts.graph.op(v);
    if (facts.context.constants().test(v))
      list(constant, op, facts.zeros.facts(op->getResult(0)).why);
    else if (read.test(v) && !facts.zeros.readsContext(op))
      list(blind, op, "");
  }
  std::string why = "nothing in the block reads the context";
  if (!blind.empty())
    why = blind + " reads no token but its own";
  if (!constant.empty())
    why = (blind.empty() ? "" : why + ", and ") + "what " + constant + " gives is a constant";
  if (blind.empty() && constant.empty() && read.any())
    why = "what reads the context reaches no output";
  return why + ", so there is nothing to absorb";
}

Verdict ctxc::planBlock(xf::BlockOp block, const PlanOptions &options) {
  BlockFacts facts(block, options);
  PlanSearch search(facts, options);
  Verdict verdict;
  if (!facts.context.depends(facts.graph.yield())) {
    verdict.kind = VerdictKind::Controllable;
    verdict.remark = nothingToAbsorb(facts);
    return verdict;
  }
  if (std::optional<PlanCandidate> chosen = choose(search, block, options)) {
    std::optional<PlanCandidate> plan =
        confirmed(search, block, options, std::move(*chosen), verdict);
    if (!plan)
      return verdict;
    verdict.kind = plan->outputOnly ? VerdictKind::OutputOnly : VerdictKind::Controllable;
    verdict.remark = remarkOn(*plan);
    if (std::string rounding = remarkOnRoundings(block); !rounding.empty())
      verdict.remark += (verdict.remark.empty() ? "" : "; ") + rounding;
    verdict.plan = std::move(plan->plan);
    return verdict;
  }
  if (!options.parameters.empty() && choosePaper(search, options))
    explainChoice(search, block, options, verdict);
  else
    explainFailure(facts, options, verdict);
  return verdict;
}
