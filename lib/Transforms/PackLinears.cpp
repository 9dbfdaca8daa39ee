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
using Key = std::tuple<const void *, Type, Type, unsigned>;

Key keyOf(xf::LinearOp op) {
  auto param = op.getWeight().getDefiningOp<xf::ParamOp>();
  const void *weight =
      param ? param.getNameAttr().getAsOpaquePointer() : op.getWeight().getAsOpaquePointer();
  return {weight, op.getWeight().getType(), op.getData().getType(), op.getTransposed()};
}

/// The ops that must move when the results of `earlier` come later: all that read them, and
/// the contextual ops of the same run after one that moves, so that these keep their order
/// (it identifies their states), with all ops that read those.
OpSet movingWith(ArrayRef<xf::LinearOp> earlier, Operation *last) {
  OpSet moving;
  auto add = [&](Operation *op) {
    for (Operation *dependent : dependentsOf(op))
      moving.insert(dependent);
  };
  for (xf::LinearOp op : earlier)
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
LogicalResult moveUsersBehind(ArrayRef<xf::LinearOp> earlier, xf::LinearOp last) {
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

unsigned pack(ArrayRef<xf::LinearOp> ops) {
  if (ops.size() < 2)
    return 0;
  xf::LinearOp last = ops.back();
  OpBuilder b(last);
  SmallVector<Value> data;
  SmallVector<Type> types;
  for (xf::LinearOp op : ops) {
    data.push_back(op.getData());
    types.push_back(op.getType());
  }
  xf::LinearOp firstOp = ops.front();
  auto packed = patch::LinearsOp::create(b, last.getLoc(), types, firstOp.getWeight(), data,
                                         last.getTransposed());
  for (auto [op, result] : llvm::zip_equal(ops, packed.getResults())) {
    xf::LinearOp linear = op;
    linear.getResult().replaceAllUsesWith(result);
    linear.erase();
  }
  return ops.size();
}

} // namespace

unsigned packLinears(xf::BlockOp block) {
  unsigned packed = 0;
  llvm::MapVector<Key, SmallVector<xf::LinearOp>> groups;
  for (xf::LinearOp op : block.getBody().front().getOps<xf::LinearOp>())
    groups[keyOf(op)].push_back(op);
  for (auto &[key, ops] : groups) {
    SmallVector<xf::LinearOp> together;
    // An earlier move may have changed the order.
    llvm::sort(ops, [](xf::LinearOp a, xf::LinearOp b) {
      return a != b && a->isBeforeInBlock(b.getOperation());
    });
    for (xf::LinearOp op : ops) {
      if (!together.empty() && failed(moveUsersBehind(together, op))) {
        packed += pack(together);
        together.clear();
      }
      together.push_back(op);
    }
    packed += pack(together);
  }
  return packed;
}

} // namespace ctxc
