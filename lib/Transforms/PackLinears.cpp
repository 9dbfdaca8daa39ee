// Packing: linears that share a weight become one sweep over it.
#include "PlanSites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ctxc {
namespace {

/// Linears with equal keys can be one op. Two xf.param of one name are the same
/// parameter, so the name (or, for another weight, the value) identifies it.
using Key = std::tuple<const void *, Type, unsigned>;

/// The key of an xf.linear, or of an xf.expert_linear.
template <typename Op> Key keyOf(Op op) {
  Value weight = op->getOperand(0);
  auto param = weight.getDefiningOp<xf::ParamOp>();
  const void *identity =
      param ? param.getNameAttr().getAsOpaquePointer() : weight.getAsOpaquePointer();
  return {identity, FunctionType::get(op.getContext(), op->getOperandTypes(), {}),
          op.getTransposed()};
}

/// The ops that must move when the results of `earlier` come later: all that read them, and
/// the contextual ops of the same run after one that moves, so that these keep their order
/// (it identifies their states), with all ops that read those.
OpSet movingWith(ArrayRef<Operation *> earlier, Operation *last) {
  OpSet moving;
  auto add = [&](Operation *op) {
    for (Operation *dependent : dependentsOf(op))
      moving.insert(dependent);
  };
  for (Operation *op : earlier)
    add(op);
  SmallVector<std::optional<xf::Run>, 2> runs;
  for (Operation &op : llvm::make_range(earlier.front()->getIterator(), last->getIterator())) {
    auto contextual = dyn_cast<xf::ContextualOpInterface>(op);
    if (!contextual)
      continue;
    if (llvm::is_contained(runs, contextual.getStateRun()) && moving.insert(&op).second)
      add(&op);
    if (moving.contains(&op))
      runs.push_back(contextual.getStateRun());
  }
  return moving;
}

/// Makes sure that no op before `last` reads a result of `earlier`, by moving those
/// that do behind `last`. Fails, with nothing moved, where `last` needs one.
LogicalResult moveUsersBehind(ArrayRef<Operation *> earlier, Operation *last) {
  OpSet moving = movingWith(earlier, last);
  if (moving.contains(last))
    return failure();
  SmallVector<Operation *> users;
  for (Operation &op : llvm::make_range(earlier.front()->getIterator(), last->getIterator()))
    if (moving.contains(&op))
      users.push_back(&op);
  Operation *place = last;
  for (Operation *user : users) {
    user->moveAfter(place);
    place = user;
  }
  return success();
}

/// The operands number `i` of all ops.
SmallVector<Value> operandsOf(ArrayRef<Operation *> ops, unsigned i) {
  return llvm::map_to_vector(ops, [&](Operation *op) { return op->getOperand(i); });
}

Operation *packed(OpBuilder &b, xf::LinearOp last, ArrayRef<Operation *> ops, TypeRange types) {
  return patch::LinearsOp::create(b, last.getLoc(), types, ops.front()->getOperand(0),
                                  operandsOf(ops, 1), last.getTransposed());
}

Operation *packed(OpBuilder &b, xf::ExpertLinearOp last, ArrayRef<Operation *> ops,
                  TypeRange types) {
  return patch::ExpertLinearsOp::create(b, last.getLoc(), types, ops.front()->getOperand(0),
                                        operandsOf(ops, 1), operandsOf(ops, 2),
                                        last.getTransposed());
}

template <typename Op> unsigned pack(ArrayRef<Operation *> ops) {
  if (ops.size() < 2)
    return 0;
  auto last = cast<Op>(ops.back());
  OpBuilder b(last);
  Operation *all = packed(b, last, ops, SmallVector<Type>(ops.size(), last.getType()));
  for (auto [op, result] : llvm::zip_equal(ops, all->getResults())) {
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  return ops.size();
}

template <typename Op> unsigned packOps(xf::BlockOp block) {
  unsigned count = 0;
  llvm::MapVector<Key, SmallVector<Operation *>> groups;
  for (Op op : block.getBody().front().getOps<Op>())
    groups[keyOf(op)].push_back(op);
  for (auto &[key, ops] : groups) {
    SmallVector<Operation *> together;
    // An earlier move may have changed the order.
    llvm::sort(ops, [](Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); });
    for (Operation *op : ops) {
      if (!together.empty() && failed(moveUsersBehind(together, op))) {
        count += pack<Op>(together);
        together.clear();
      }
      together.push_back(op);
    }
    count += pack<Op>(together);
  }
  return count;
}

} // namespace

unsigned packLinears(xf::BlockOp block) {
  return packOps<xf::LinearOp>(block) + packOps<xf::ExpertLinearOp>(block);
}

} // namespace ctxc
