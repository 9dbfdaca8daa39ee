#include "ctxc/Analysis/OutputControl.h"
#include "dialects/XF/Sizes.h"
#include <deque>

using namespace mlir;
using namespace ctxc;
using xf::Solvability;

/// Why a condition of a link fails on an open set; empty where none does. A condition that fails
/// where a vector vanishes as a whole is checked at run time.
static std::string findFailedCondition(ChainLink link, const ZeroRange &zeros) {
  for (const xf::LinkCondition &condition :
       cast<xf::SolvableOpInterface>(link.op).getConditions(link.operand, xf::Split::Even)) {
    Value factor = link.op->getOperand(condition.operand);
    if (std::string why = xf::unreliableDivisor(condition.kind, zeros.facts(factor)); !why.empty())
      return "it would be divided by " + why;
  }
  return "";
}

/// Why `link` cannot be solved for its operand; empty where it can.
static std::string findLinkBreak(ChainLink link, const ZeroRange &zeros) {
  auto solvable = dyn_cast<xf::SolvableOpInterface>(link.op);
  if (!solvable)
    return "it is not known how to solve " + link.op->getName().getStringRef().str() +
           " for its input";
  std::string reason;
  switch (solvable.getSolvability(link.operand, reason)) {
  case Solvability::Exact:
    return "";
  case Solvability::Conditional:
    return findFailedCondition(link, zeros);
  case Solvability::No:
    return reason;
  }
  llvm_unreachable("a solvability of no known kind");
}

/// Why what is chosen on the chain is not known: the choice starts from the present value, and
/// other parts of that may wait for patches of their own.
static std::string findUnknownChoice(const OutputChain &chain) {
  bool isPart = false;
  for (ChainLink link : chain.links) {
    if (isPart && (xf::isPartOfOperand(link.op, link.operand) || xf::isTap(link.op) ||
                   cast<xf::SolvableOpInterface>(link.op).isUnderdetermined(link.operand)))
      return "what " + link.op->getName().getStringRef().str() +
             " leaves as it is has parts that wait for other patches";
    isPart |= xf::isPartOfResult(link.op, link.operand);
  }
  return "";
}

static bool isPartial(const OutputChain &chain) {
  return llvm::any_of(chain.links, [](ChainLink link) { return xf::isSolvedInParts(link.op); });
}

std::string ctxc::checkChain(const BlockGraph &graph, const ZeroRange &zeros,
                             const OutputChain &chain) {
  BlockGraph::Set fromSite = graph.reach(graph.vertex(chain.site));
  Operation *below = chain.site;
  for (ChainLink link : chain.links) {
    if (link.operand >= link.op->getNumOperands() ||
        link.op->getOperand(link.operand).getDefiningOp() != below)
      return "the chain is not connected at " + link.op->getName().getStringRef().str();
    if (std::string why = findLinkBreak(link, zeros); !why.empty())
      return why;
    bool isPart = xf::isPartOfResult(link.op, link.operand);
    for (auto [i, operand] : llvm::enumerate(link.op->getOperands()))
      if (i != link.operand && !isPart && fromSite.test(graph.vertex(operand)))
        return "'" + Sites::name(chain.site) + "' also reaches it by another way";
    below = link.op;
  }
  if (!chain.links.empty() && xf::isDirection(chain.links.back().op))
    return "a patch gives what this norm computes a direction, and no length";
  return findUnknownChoice(chain);
}

OutputChains ctxc::findOutputChains(const BlockGraph &graph, const Sites &sites,
                                    const ZeroRange &zeros, Value wanted) {
  OutputChains result;
  std::deque<std::pair<Value, SmallVector<ChainLink>>> queue; // links from the value to the target
  BlockGraph::Set seen = graph.none();
  queue.push_back({wanted, {}});
  while (!queue.empty()) {
    auto [value, outwards] = std::move(queue.front());
    queue.pop_front();
    Operation *op = value.getDefiningOp();
    if (!op || isa<xf::ParamOp>(op) || seen.test(graph.vertex(op)))
      continue;
    seen.set(graph.vertex(op));

    if (const Site *site = sites.lookup(op)) {
      OutputChain chain{op, SmallVector<ChainLink>(llvm::reverse(outwards))};
      std::string why = site->why.empty() ? checkChain(graph, zeros, chain) : site->why;
      if (why.empty())
        (isPartial(chain) ? result.partial : result.chains).push_back(chain);
      else
        result.breaks.push_back({op, why, /*isSite=*/true});
    }
    if (sites.isOutOfScope(op))
      continue; // a plan may not change what comes before it
    // The later operand first: in a sum, the branch rather than the residual stream.
    for (unsigned i = op->getNumOperands(); i-- > 0;) {
      Value operand = op->getOperand(i);
      if (operand.getDefiningOp<xf::ParamOp>())
        continue;
      ChainLink link{op, i};
      if (std::string why = findLinkBreak(link, zeros); !why.empty()) {
        result.breaks.push_back({op, why, /*isSite=*/false});
        continue;
      }
      SmallVector<ChainLink> next = outwards;
      next.push_back(link);
      queue.push_back({operand, next});
    }
  }
  return result;
}

SmallVector<Value> ctxc::findWaists(const BlockGraph &graph, const BlockGraph::Set &sources,
                                    const BlockGraph::Set &closed) {
  SmallVector<Value> waists;
  unsigned yield = graph.vertex(graph.yield());
  BlockGraph::Set dependent = graph.reach(sources, closed);
  for (unsigned v = graph.size() - 1; v-- > 0;) {
    Operation *op = graph.op(v);
    if (!op || op->getNumResults() != 1 || !dependent.test(v))
      continue;
    BlockGraph::Set blocked = closed;
    blocked.set(v);
    if (graph.path(sources, yield, blocked).empty())
      waists.push_back(op->getResult(0));
  }
  return waists;
}
