#include "lib/Lowering/CPU/VectorBody.h"
#include "lib/Lowering/CPU/VectorSums.h"

using namespace mlir;
using namespace ctxc;

bool ctxc::hasVectorForm(Block &body) {
  return llvm::all_of(body.without_terminator(), [](Operation &op) {
    return op.hasTrait<OpTrait::Vectorizable>() || op.hasTrait<OpTrait::ConstantLike>();
  });
}

Value ctxc::broadcastLanes(OpBuilder &b, Location loc, Value scalar) {
  return vector::BroadcastOp::create(b, loc, VectorType::get({rowLanes}, scalar.getType()), scalar);
}

void ctxc::applyToVectors(OpBuilder &b, Location loc, Block &body, IRMapping &wide,
                          Operation *except) {
  auto widen = [&](Operation &constant) {
    wide.map(constant.getResult(0), broadcastLanes(b, loc, b.clone(constant)->getResult(0)));
  };
  for (Operation &op : body.without_terminator()) {
    if (&op == except)
      continue;
    if (op.hasTrait<OpTrait::ConstantLike>()) {
      widen(op);
      continue;
    }
    for (Value operand : op.getOperands())
      if (Operation *outside = operand.getDefiningOp(); outside && !wide.contains(operand))
        widen(*outside);
    for (Value result : b.clone(op, wide)->getResults())
      result.setType(VectorType::get({rowLanes}, result.getType()));
  }
}
