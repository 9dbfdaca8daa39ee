// Which matrices of a layer are fitted, by the ops' interfaces.
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/OutputControl.h"
#include "ctxc/Distil/Distil.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;

namespace {

struct Facts {
  explicit Facts(const LayerVerdict &layer)
      : graph(layer.block), zeros(layer.block, layer.op), context(graph, zeros, false),
        sites(graph, zeros, layer.options->bindings, SiteScope::All) {}
  BlockGraph graph;
  ZeroRange zeros;
  ContextDependence context;
  Sites sites;
};

bool isMatrix(Operation *op) {
  auto patchable = dyn_cast<patch::PatchableOpInterface>(op);
  return patchable && patchable.getPatchForm().kind == patch::PatchForm::Rank1;
}

/// The site of all last matrices of a mixture's experts, if these are what `chain` begins with: the
/// product is then their sum, which is linear in them.
std::optional<FitSite> expertSite(const OutputChain &chain, Value goal) {
  auto matrices = dyn_cast<xf::ExpertLinearOp>(chain.site);
  if (!matrices || cast<RankedTensorType>(matrices.getData().getType()).getRank() != 2)
    return std::nullopt;
  if (!matrices.getSelected().getDefiningOp<xf::TopKOp>())
    return std::nullopt;
  FitSite site{{chain, goal, nullptr}, {}, nullptr, {}};
  for (auto [i, link] : llvm::enumerate(chain.links)) {
    site.toSum.push_back(link);
    if (auto sum = dyn_cast<xf::CombineOp>(link.op); sum && link.operand == 1) {
      site.links.erase(site.links.begin(), site.links.begin() + i + 1);
      return site;
    }
    if (!isa<xf::AddOp>(link.op)) // such as the experts' biases
      return std::nullopt;
  }
  return std::nullopt;
}

/// Lets the experts' site also stand for the matrix of `shared`, if its product is what is added to
/// theirs, or is so once it is multiplied by one number of the token.
bool join(FitSite &experts, const FitSite &shared) {
  ArrayRef<ChainLink> behind = shared.links;
  if (behind.empty() || !isMatrix(shared.site))
    return false;
  Value gate;
  if (auto times = dyn_cast<xf::MulOp>(behind.front().op)) {
    gate = times->getOperand(1 - behind.front().operand);
    if (cast<RankedTensorType>(gate.getType()).getNumElements() != 1)
      return false;
    behind = behind.drop_front();
  }
  auto isSame = [](ChainLink a, ChainLink b) { return a.op == b.op; };
  if (behind.empty() || !isa<xf::AddOp>(behind.front().op) || shared.goal != experts.goal ||
      !llvm::equal(behind, experts.links, isSame))
    return false;
  experts.toSum.push_back(experts.links.front());
  experts.links.erase(experts.links.begin());
  experts.shared = shared.site;
  experts.sharedGate = gate;
  return true;
}

/// The site of `chain`, if a matrix is what it patches first.
std::optional<FitSite> siteOf(const Facts &facts, const OutputChain &chain, Value goal) {
  // The fit does not follow what earlier tokens give.
  if (llvm::any_of(chain.links, [](ChainLink link) { return xf::isTap(link.op); }))
    return std::nullopt;
  FitSite patch{{chain, goal, nullptr}, {}, nullptr, {}};
  if (isMatrix(chain.site))
    return patch;
  if (isa<xf::ExpertLinearOp>(chain.site))
    return expertSite(chain, goal);
  patch.normMatrix = cast<xf::AssignableOpInterface>(chain.site).findNormMatrix();
  if (patch.normMatrix && isMatrix(patch.normMatrix) &&
      facts.sites.isAssignable(patch.normMatrix) && facts.sites.isAssignable(chain.site))
    return patch;
  return std::nullopt;
}

/// Whether some value that the chain is solved with depends on the result of `op`.
bool reads(const Facts &facts, const FitSite &site, Operation *op) {
  BlockGraph::Set behind = facts.graph.reach(facts.graph.vertex(op));
  for (const ChainLink &link : llvm::concat<const ChainLink>(site.toSum, site.links))
    for (OpOperand &operand : link.op->getOpOperands())
      if (operand.getOperandNumber() != link.operand &&
          behind.test(facts.graph.vertex(operand.get())))
        return true;
  return false;
}

} // namespace

SmallVector<FitSite> ctxc::findFitSites(const LayerVerdict &layer) {
  Facts facts(layer);
  SmallVector<FitSite> candidates; // the outermost goals first
  for (Value goal : findWaists(facts.graph, facts.context.sources(), facts.context.constants()))
    for (const OutputChain &chain :
         findOutputChains(facts.graph, facts.sites, facts.zeros, goal).chains)
      if (auto site = siteOf(facts, chain, goal))
        candidates.push_back(*site);
  // Beside a matrix that every token goes through and that is no part of their site, a mixture's
  // experts would be fitted to what is left of the same goal. They are not.
  llvm::SmallPtrSet<Operation *, 4> joined;
  llvm::SmallDenseSet<Value, 4> served;
  for (FitSite &experts : candidates)
    if (!experts.toSum.empty())
      for (const FitSite &shared : candidates)
        if (!experts.shared && shared.toSum.empty() && join(experts, shared))
          joined.insert(shared.site);
  llvm::erase_if(candidates, [&](const FitSite &site) { return joined.contains(site.site); });
  for (const FitSite &site : candidates)
    if (site.toSum.empty())
      served.insert(site.goal);
  llvm::erase_if(candidates, [&](const FitSite &site) {
    return !site.toSum.empty() && served.contains(site.goal);
  });
  llvm::SetVector<Operation *> matrices;
  for (const FitSite &site : candidates)
    matrices.insert(site.first());
  SmallVector<Operation *> order = matrices.takeVector();
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<FitSite> chosen;
  for (auto [i, matrix] : llvm::enumerate(order)) {
    // What a later matrix writes is not known yet.
    ArrayRef<Operation *> later = ArrayRef(order).drop_front(i + 1);
    for (const FitSite &site : candidates)
      if (site.first() == matrix &&
          llvm::none_of(later, [&](Operation *op) { return reads(facts, site, op); })) {
        chosen.push_back(site);
        break;
      }
  }
  return chosen;
}
