#include "ctxc/Analysis/Moved.h"

using namespace mlir;
using namespace ctxc;

Moved::Moved(const BlockGraph &graph, const Sites &sites) : graph(graph), sites(sites) {
  xf::BlockOp block = graph.getBlock();
  for (Operation &op : block.getBody().front())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return moves(&op, operand); }))
      moved.insert(op.result_begin(), op.result_end());
}

bool Moved::isOwn(Operation *op) const {
  return sites.isOutOfScope(op) && !sites.followsContext(op);
}

bool Moved::moves(Operation *op, Value operand) const {
  if (auto param = operand.getDefiningOp<xf::ParamOp>())
    return !sites.isFrozen(param) && !isOwn(op);
  return moves(operand);
}

SmallVector<xf::ParamOp> Moved::parameters() const {
  llvm::StringSet<> own, seen;
  xf::BlockOp block = graph.getBlock();
  block.walk([&](xf::ParamOp param) {
    if (llvm::any_of(param->getUsers(), [&](Operation *user) { return isOwn(user); }))
      own.insert(param.getName());
  });
  SmallVector<xf::ParamOp> result;
  block.walk([&](xf::ParamOp param) {
    bool used = llvm::any_of(param->getUsers(),
                             [&](Operation *user) { return moves(user, param.getResult()); });
    if (used && !own.contains(param.getName()) && seen.insert(param.getName()).second)
      result.push_back(param);
  });
  return result;
}
