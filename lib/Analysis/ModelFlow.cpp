#include "ctxc/Analysis/ModelFlow.h"
#include "ctxc/Analysis/BlockGraph.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ctxc;

ModelFlow::LayerFlow ModelFlow::flowOf(xf::BlockOp block) {
  BlockGraph graph(block);
  BlockGraph::Set context = graph.reach(graph.contextualOps());
  LayerFlow flow;
  flow.inputs.resize(block.getNumResults());
  for (Value output : graph.yield()->getOperands())
    flow.readsContext.push_back(context.test(graph.vertex(output)));
  BlockGraph::Set inputs = graph.inputs();
  for (unsigned input : inputs.set_bits()) {
    BlockGraph::Set reached = graph.reach(input);
    for (auto [i, output] : llvm::enumerate(graph.yield()->getOperands()))
      if (reached.test(graph.vertex(output)))
        flow.inputs[i].push_back(input);
  }
  return flow;
}

ModelFlow::ModelFlow(xf::ModelOp model, unsigned startLayer) : body(model.getBody().front()) {
  // Layers of one block depend alike.
  llvm::DenseMap<Operation *, LayerFlow> known;
  for (Operation &op : body) {
    if (auto layer = dyn_cast<xf::LayerOp>(op)) {
      unsigned number = numbers.size();
      numbers[layer] = number;
      if (number < startLayer) {
        auto block = SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr());
        auto [flow, isNew] = known.try_emplace(block);
        if (isNew)
          flow->second = flowOf(block);
        unpatched[layer] = flow->second;
      }
    }
    for (OpResult result : op.getResults())
      if (enters(result) || llvm::any_of(feeding(result), [&](Value v) { return depends(v); }))
        dependent.insert(result);
  }
}

SmallVector<Value> ModelFlow::feeding(OpResult result) const {
  Operation *op = result.getOwner();
  SmallVector<Value> values;
  if (!isa<xf::LayerOp>(op)) {
    // What an op with a region reads in it counts as read by the op.
    op->walk([&](Operation *inner) { llvm::append_range(values, inner->getOperands()); });
    return values;
  }
  if (auto flow = unpatched.find(op); flow != unpatched.end())
    for (unsigned input : flow->second.inputs[result.getResultNumber()])
      values.push_back(op->getOperand(input));
  return values;
}

bool ModelFlow::enters(OpResult result) const {
  Operation *op = result.getOwner();
  if (auto flow = unpatched.find(op); flow != unpatched.end())
    return flow->second.readsContext[result.getResultNumber()];
  auto reads = [](Operation *inner) {
    return isa<xf::ContextualOpInterface>(inner) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(reads).wasInterrupted();
}

InputSources ModelFlow::sources(xf::LayerOp layer) const {
  std::vector<bool> dependent;
  for (Value input : layer.getInputs())
    dependent.push_back(depends(input));
  return InputSources(std::move(dependent));
}

SmallVector<Operation *> ModelFlow::sourcesOfLogits() const {
  SmallVector<Operation *> sources;
  if (!depends(logits()))
    return sources;
  llvm::DenseSet<Value> needed{logits()};
  for (Operation &op : llvm::reverse(body))
    for (OpResult result : op.getResults()) {
      if (!needed.contains(result))
        continue;
      if (enters(result) && (sources.empty() || sources.back() != &op))
        sources.push_back(&op);
      for (Value value : feeding(result))
        if (depends(value))
          needed.insert(value);
    }
  std::reverse(sources.begin(), sources.end());
  return sources;
}

SmallVector<Value> ModelFlow::path(Operation *source) const {
  llvm::MapVector<Value, Value> before; // a value, and the one that the context came from
  for (OpResult result : source->getResults())
    if (enters(result))
      before[result] = Value();
  for (Operation *op = source->getNextNode(); op; op = op->getNextNode())
    for (OpResult result : op->getResults())
      for (Value value : feeding(result))
        if (before.contains(value)) {
          before[result] = value;
          break;
        }
  SmallVector<Value> path;
  for (Value value = logits(); value && before.contains(value); value = before.lookup(value))
    path.push_back(value);
  std::reverse(path.begin(), path.end());
  return path;
}
