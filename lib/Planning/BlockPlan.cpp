#include "ctxc/Planning/BlockPlan.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;

SmallVector<Operation *> BlockPlan::patchedOps() const {
  SmallVector<Operation *> ops(inputSites);
  for (const OutputPatch &output : outputs) {
    if (output.normMatrix)
      ops.push_back(output.normMatrix);
    if (output.site)
      ops.push_back(output.site);
  }
  llvm::sort(ops, [](Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); });
  return ops;
}

const OutputPatch *BlockPlan::outputOf(Operation *op) const {
  const auto *it = llvm::find_if(
      outputs, [&](const OutputPatch &o) { return o.site == op || o.normMatrix == op; });
  return it == outputs.end() ? nullptr : it;
}

/// The values that must be known before `output` can be solved for.
static SmallVector<Value> needsOf(const OutputPatch &output) {
  SmallVector<Value> needs(output.first()->getOperands());
  for (ChainLink link : output.links)
    for (auto [i, operand] : llvm::enumerate(link.op->getOperands()))
      if (i != link.operand && !xf::isPartOfResult(link.op, link.operand))
        needs.push_back(operand);
  // A tap runs before the patch, and contextual ops keep their order.
  for (ChainLink link : output.links)
    for (Operation *op = xf::isTap(link.op) ? link.op->getPrevNode() : nullptr; op;
         op = op->getPrevNode())
      if (isa<xf::ContextualOpInterface>(op) &&
          llvm::none_of(output.links, [&](ChainLink other) { return other.op == op; }))
        needs.push_back(op->getResult(0));
  return needs;
}

std::optional<SmallVector<unsigned>> BlockPlan::solvingOrder() const {
  SmallVector<OpSet> waiting, reached;
  for (const OutputPatch &output : outputs) {
    waiting.push_back(waitingFor(output.first()));
    reached.push_back(dependentsOf(output.first()));
    reached.back().insert(output.first());
  }
  SmallVector<unsigned> order;
  auto isReady = [&](unsigned i) {
    // Later patches must not change the goal, but for other parts of it.
    for (unsigned j = 0; j < outputs.size(); ++j)
      if (outputs[j].goal != outputs[i].goal && !llvm::is_contained(order, j) &&
          reached[j].contains(outputs[i].goal.getDefiningOp()))
        return false;
    return llvm::all_of(needsOf(outputs[i]), [&](Value need) {
      return llvm::none_of(llvm::seq<unsigned>(0, outputs.size()), [&](unsigned j) {
        return !llvm::is_contained(order, j) && need.getDefiningOp() &&
               (waiting[j].contains(need.getDefiningOp()) ||
                (j != i && need.getDefiningOp() == outputs[j].first()));
      });
    });
  };
  while (order.size() < outputs.size()) {
    auto next = llvm::find_if(llvm::seq<unsigned>(0, outputs.size()), [&](unsigned i) {
      return !llvm::is_contained(order, i) && isReady(i);
    });
    if (next == llvm::seq<unsigned>(0, outputs.size()).end())
      return std::nullopt;
    order.push_back(*next);
  }
  return order;
}

OpSet ctxc::dependentsOf(Operation *op) {
  OpSet seen;
  SmallVector<Operation *> work = {op};
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers())
      if (seen.insert(user).second)
        work.push_back(user);
  return seen;
}

OpSet ctxc::waitingFor(Operation *first) {
  OpSet waiting = dependentsOf(first);
  bool contextualWaits = false;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<xf::ContextualOpInterface>(op))
      continue;
    contextualWaits |= waiting.contains(op);
    if (contextualWaits && waiting.insert(op).second)
      for (Operation *dependent : dependentsOf(op))
        waiting.insert(dependent);
  }
  return waiting;
}
