#include "ctxc/Analysis/BlockGraph.h"
#include <deque>

using namespace mlir;
using namespace ctxc;

BlockGraph::BlockGraph(xf::BlockOp block) : block(block) {
  Block &body = block.getBody().front();
  ops.append(body.getNumArguments(), nullptr);
  for (Operation &op : body) {
    vertices[&op] = ops.size();
    ops.push_back(&op);
  }
  out.resize(ops.size());
  in.resize(ops.size());
  for (Operation &op : body)
    for (Value operand : op.getOperands()) {
      out[vertex(operand)].push_back(vertices[&op]);
      in[vertices[&op]].push_back(vertex(operand));
    }
}

unsigned BlockGraph::vertex(Value value) const {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getArgNumber();
  return vertices.lookup(value.getDefiningOp());
}

BlockGraph::Set BlockGraph::inputs() const {
  Set set = none();
  set.set(0, getBlock().getBody().getNumArguments());
  return set;
}

BlockGraph::Set BlockGraph::contextualOps() const {
  Set set = none();
  for (auto [v, op] : llvm::enumerate(ops))
    if (isa_and_nonnull<xf::ContextualOpInterface>(op))
      set.set(v);
  BlockGraph::Set outputs = none();
  outputs.set(vertex(yield()));
  set &= reach(outputs, none(), /*backwards=*/true);
  return set;
}

BlockGraph::Set BlockGraph::reach(const Set &from, const Set &blocked, bool backwards) const {
  Set seen = from;
  seen.reset(blocked);
  SmallVector<unsigned> work(seen.set_bits());
  auto enter = [&](unsigned v) {
    if (seen.test(v) || blocked.test(v))
      return;
    seen.set(v);
    work.push_back(v);
  };
  while (!work.empty()) {
    unsigned v = work.pop_back_val();
    for (unsigned w : backwards ? predecessors(v) : successors(v))
      enter(w);
  }
  return seen;
}

BlockGraph::Set BlockGraph::reach(unsigned from) const {
  Set set = none();
  set.set(from);
  return reach(set);
}

SmallVector<unsigned> BlockGraph::path(const Set &from, unsigned to, const Set &blocked) const {
  constexpr unsigned unseen = ~0u;
  SmallVector<unsigned> parent(size(), unseen);
  std::deque<unsigned> queue;
  for (unsigned v : from.set_bits())
    if (!blocked.test(v)) {
      parent[v] = v;
      queue.push_back(v);
    }
  while (!queue.empty() && parent[to] == unseen) {
    unsigned v = queue.front();
    queue.pop_front();
    for (unsigned w : successors(v))
      if (parent[w] == unseen && !blocked.test(w)) {
        parent[w] = v;
        queue.push_back(w);
      }
  }
  SmallVector<unsigned> result;
  if (parent[to] == unseen)
    return result;
  for (unsigned v = to;; v = parent[v]) {
    result.push_back(v);
    if (parent[v] == v)
      break;
  }
  std::reverse(result.begin(), result.end());
  return result;
}
