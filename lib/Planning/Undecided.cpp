// What is not shown of a block: neither a plan nor an impossibility, or an impossibility that no
// numbers confirm.
#include "Explanation.h"
#include "dialects/XF/Sizes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ctxc;

static int64_t entries(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Whether G of `chain` reaches outputs through `target` alone: the patch would change an output
/// that it reaches by another way, even one that does not depend on the context.
static bool leavesOthersAlone(const BlockGraph &graph, const OutputChain &chain, Value target) {
  // Where G's own result is the target, every path goes through it.
  if (chain.links.empty())
    return true;
  BlockGraph::Set site = graph.none(), blocked = graph.none();
  site.set(graph.vertex(chain.site));
  blocked.set(graph.vertex(target));
  BlockGraph::Set reached = graph.reach(site, blocked);
  return llvm::none_of(graph.yield()->getOperands(),
                       [&](Value v) { return reached.test(graph.vertex(v)); });
}

/// The path on which the context passes a patch for one output alone.
void Explanation::notePathPastGoals() {
  for (Value output : facts.graph.yield()->getOperands())
    for (const OutputChain &chain :
         findOutputChains(facts.graph, facts.sites, facts.zeros, output).chains) {
      if (!facts.context.depends(output) || !leavesOthersAlone(facts.graph, chain, output))
        continue;
      BlockPlan plan;
      plan.outputs.push_back({chain, output});
      InputCut cut =
          findMinimumCut(facts.graph, facts.sites, inputProblem(facts, plan, /*outputOnly=*/true),
                         facts.graph.reach(outputPatches(facts.graph, plan)));
      if (cut.exists)
        continue;
      note(chain.site, "with a patch of '" + Sites::name(chain.site) +
                           "' alone, another output is not reached:");
      llvm::append_range(verdict.causes.back().notes, witnessNotes(facts, cut.witness));
      return;
    }
}

/// The walks back from the outputs, and where each broke.
void Explanation::undecided() {
  verdict.kind = VerdictKind::Undecided;
  SmallVector<ChainBreak> breaks;
  // Several outputs may break at one op, for the same reason or for others.
  auto add = [&](const ChainBreak &b) {
    auto known = llvm::find_if(breaks, [&](const ChainBreak &o) { return o.op == b.op; });
    if (known == breaks.end())
      breaks.push_back(b);
    else if (!StringRef(known->reason).contains(b.reason))
      known->reason += ", and " + b.reason;
  };
  bool anyChain = false;
  unsigned outputs = 0;
  int64_t wanted = 0, supplied = 0; // entries of the outputs, and of what solves for them
  llvm::SmallPtrSet<Operation *, 8> solvers;
  for (Value output : facts.graph.yield()->getOperands()) {
    if (!facts.context.depends(output))
      continue;
    ++outputs;
    wanted += entries(output);
    OutputChains found = findOutputChains(facts.graph, facts.sites, facts.zeros, output);
    for (const OutputChain &chain : found.chains) {
      if (solvers.insert(chain.site).second)
        supplied += entries(chain.site->getResult(0));
      bool alone = leavesOthersAlone(facts.graph, chain, output);
      anyChain |= alone;
      if (!alone)
        add({chain.site,
             "a patch of '" + Sites::name(chain.site) +
                 "' would also change another "
                 "output, which is right as it is or differs in another way",
             /*isSite=*/true});
    }
    for (const OutputChain &chain : found.partial)
      for (ChainLink link : chain.links)
        if (xf::isPartOfResult(link.op, link.operand) &&
            llvm::none_of(breaks, [&](const ChainBreak &b) { return b.op == link.op; }))
          breaks.push_back({link.op,
                            "'" + Sites::name(chain.site) +
                                "' brings a part of it to its target, and no patch another part",
                            /*isSite=*/false});
    for (const ChainBreak &b : found.breaks) {
      if (facts.sites.inContextualPart(b.op) && !facts.sites.followsContext(b.op))
        continue;
      add(b);
    }
  }
  std::string what =
      "whether " + subject + " can take the context into its parameters is undecided: ";
  if (outputs > 1 && anyChain) {
    std::string rank =
        supplied < wanted
            ? " with " + std::to_string(wanted) +
                  " entries depend on the context, and what may be "
                  "patched can be solved for " +
                  std::to_string(supplied) + " of them at once"
            : " depend on the context, and no set of patches was found that brings each of them to "
              "its target";
    cause(rules::SeveralOutputs, facts.graph.yield(), what + Twine(outputs) + " outputs" + rank);
    notePathPastGoals();
    advise("give each output a matrix or bias of its own, yield one, or let all of the "
           "context pass one sum before they part");
    return;
  }
  if (breaks.empty()) {
    cause(rules::NoSolvableChain, facts.graph.yield(),
          what + "no parameter outside the contextual part reaches the output "
                 "by a chain that can be solved");
    advise(wayRound());
    return;
  }
  cause(rules::NoSolvableChain, breaks.front().op, what + breaks.front().reason);
  for (const ChainBreak &b : ArrayRef(breaks).drop_front())
    note(b.op, b.reason);
  advise("give the block a bias, a scale or a matrix of its own between this op and its "
         "output, or " +
         wayRound());
}

/// Takes a rejection back for which no counterexample was found. The analysis knows how far patches
/// can move the output; it does not know whether the context moves it further.
void Explanation::unconfirmed(const std::string &why) {
  verdict.kind = VerdictKind::Undecided;
  verdict.bound.reset();
  std::vector<Finding> claims = std::move(verdict.causes);
  verdict.causes.clear();
  cause(rules::UnconfirmedRejection, claims.front().op,
        "whether " + subject +
            " can take the context into its parameters is undecided: by its structure no patch "
            "can [" +
            claims.front().rule + "], and " + why);
  for (const Finding &finding : claims) {
    note(finding.op, StringRef(finding.message).split("parameters: ").second);
    for (const Remark &remark : finding.notes)
      note(remark.op, remark.message);
  }
  advise(claims.front().advice);
}

/// A counterexample decides where no rule does; the missing rule becomes its explanation.
void Explanation::refuted(double leastError) {
  verdict.kind = VerdictKind::Rejected;
  std::vector<Finding> missing = std::move(verdict.causes);
  verdict.causes.clear();
  cause(rules::Counterexample, missing.front().op,
        subject +
            " cannot take the context into its parameters: weights and a context were found "
            "for which no patch brings the output nearer than " +
            llvm::formatv("{0}", llvm::format("%.3g", leastError)).str() + " to what it should be");
  for (const Finding &finding : missing) {
    note(finding.op, StringRef(finding.message).split("undecided: ").second);
    for (const Remark &remark : finding.notes)
      note(remark.op, remark.message);
  }
  advise(missing.front().advice);
}
