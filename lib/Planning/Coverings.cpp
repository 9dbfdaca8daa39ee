// Which chains together bring a value to its target that is put together from parts.
#include "Diagnose.h"
#include "dialects/XF/Sizes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ctxc;

using Chains = SmallVector<OutputChain, 1>;

/// The links at which the chain is solved for one part of several, the outermost first.
static SmallVector<ChainLink> partLinks(const OutputChain &chain) {
  SmallVector<ChainLink> links;
  for (ChainLink link : llvm::reverse(chain.links))
    if (xf::isPartOfResult(link.op, link.operand))
      links.push_back(link);
  return links;
}

/// The sets for a value that all of `chains` lead to, `depth` parts below the goal.
static std::vector<Chains> coverValue(const Chains &chains, unsigned depth, size_t most) {
  std::vector<Chains> sets;
  // An op is met by one way from the goal, so that what follows it is the same for all its parts.
  llvm::MapVector<Operation *, SmallVector<Chains>> throughParts;
  for (const OutputChain &chain : chains) {
    SmallVector<ChainLink> links = partLinks(chain);
    if (links.size() == depth) {
      sets.push_back({chain});
      continue;
    }
    SmallVector<Chains> &parts = throughParts[links[depth].op];
    parts.resize(links[depth].op->getNumOperands());
    parts[links[depth].operand].push_back(chain);
  }
  for (auto &[op, parts] : throughParts) {
    std::vector<Chains> products(1);
    for (const Chains &part : parts) {
      std::vector<Chains> longer;
      for (const Chains &ofPart : coverValue(part, depth + 1, most))
        for (const Chains &before : products)
          if (longer.size() < most) {
            longer.push_back(before);
            longer.back().append(ofPart.begin(), ofPart.end());
          }
      products = std::move(longer);
    }
    sets.insert(sets.end(), products.begin(), products.end());
  }
  if (sets.size() > most)
    sets.resize(most);
  return sets;
}

std::vector<Chains> ctxc::coverings(ArrayRef<OutputChain> partial, size_t most) {
  return coverValue(Chains(partial), 0, most);
}

/// Whether the chain to the plan's goal `goal` ends in `links`.
static bool endsIn(const OutputPatch &output, Value goal, ArrayRef<ChainLink> links) {
  ArrayRef<ChainLink> own = output.links;
  return output.goal == goal && own.size() >= links.size() &&
         llvm::equal(own.take_back(links.size()), links, [](ChainLink a, ChainLink b) {
           return a.op == b.op && a.operand == b.operand;
         });
}

Operation *ctxc::findUncoveredPart(const BlockPlan &plan) {
  for (const OutputPatch &output : plan.outputs)
    for (auto [i, link] : llvm::enumerate(output.links)) {
      if (!xf::isPartOfResult(link.op, link.operand))
        continue;
      SmallVector<ChainLink> links(ArrayRef(output.links).drop_front(i));
      for (unsigned part = 0; part < link.op->getNumOperands(); ++part) {
        links.front().operand = part;
        if (llvm::none_of(plan.outputs, [&](const OutputPatch &other) {
              return endsIn(other, output.goal, links);
            }))
          return link.op;
      }
    }
  return nullptr;
}
