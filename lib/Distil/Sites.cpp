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

/// The output patch of `chain`, if a matrix is what it patches first.
std::optional<OutputPatch> matrixPatch(const Facts &facts, const OutputChain &chain, Value goal) {
  // The fit does not follow what earlier tokens give.
  if (llvm::any_of(chain.links, [](ChainLink link) { return xf::isTap(link.op); }))
    return std::nullopt;
  OutputPatch patch{chain, goal, nullptr};
  if (isMatrix(chain.site))
    return patch;
  patch.normMatrix = cast<xf::AssignableOpInterface>(chain.site).findNormMatrix();
  if (patch.normMatrix && isMatrix(patch.normMatrix) &&
      facts.sites.isAssignable(patch.normMatrix) && facts.sites.isAssignable(chain.site))
    return patch;
  return std::nullopt;
}

/// Whether some value that the chain is solved with depends on the result of `op`.
bool reads(const Facts &facts, const OutputPatch &patch, Operation *op) {
  BlockGraph::Set behind = facts.graph.reach(facts.graph.vertex(op));
  for (const ChainLink &link : patch.links)
    for (OpOperand &operand : link.op->getOpOperands())
      if (operand.getOperandNumber() != link.operand &&
          behind.test(facts.graph.vertex(operand.get())))
        return true;
  return false;
}

} // namespace

SmallVector<OutputPatch> ctxc::findFitSites(const LayerVerdict &layer) {
  Facts facts(layer);
  SmallVector<OutputPatch> candidates; // the outermost goals first
  for (Value goal : findWaists(facts.graph, facts.context.sources(), facts.context.constants()))
    for (const OutputChain &chain :
         findOutputChains(facts.graph, facts.sites, facts.zeros, goal).chains)
      if (auto patch = matrixPatch(facts, chain, goal))
        candidates.push_back(*patch);
  llvm::SetVector<Operation *> matrices;
  for (const OutputPatch &patch : candidates)
    matrices.insert(patch.first());
  SmallVector<Operation *> order = matrices.takeVector();
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<OutputPatch> chosen;
  for (auto [i, matrix] : llvm::enumerate(order)) {
    // What a later matrix writes is not known yet.
    ArrayRef<Operation *> later = ArrayRef(order).drop_front(i + 1);
    for (const OutputPatch &patch : candidates)
      if (patch.first() == matrix &&
          llvm::none_of(later, [&](Operation *op) { return reads(facts, patch, op); })) {
        chosen.push_back(patch);
        break;
      }
  }
  return chosen;
}
