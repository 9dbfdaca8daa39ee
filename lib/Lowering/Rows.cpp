#include "lib/Lowering/Rows.h"
#include "ctxc/Lowering/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ctxc;

Origin ctxc::originOf(Value memref) {
  Origin origin{memref};
  while (Operation *op = origin.root.getDefiningOp()) {
    if (isa<memref::AllocOp>(op))
      return origin;
    if (auto view = dyn_cast<memref::SubViewOp>(op)) {
      origin.sameRows &=
          view.getMixedOffsets().front() == OpFoldResult(Builder(op).getIndexAttr(0)) &&
          view.getMixedStrides().front() == OpFoldResult(Builder(op).getIndexAttr(1)) &&
          !view.getDroppedDims().test(0);
      origin.root = view.getSource();
    } else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op)) {
      origin.sameRows &= expand.getReassociationIndices().front().size() == 1;
      origin.root = expand.getSrc();
    } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
      origin.sameRows &= collapse.getReassociationIndices().front().size() == 1;
      origin.root = collapse.getSrc();
    } else if (auto cast = dyn_cast<memref::CastOp>(op)) {
      origin.root = cast.getSource();
    } else {
      return {};
    }
  }
  return origin;
}

/// Whether `op` may write to the memory of `root`.
static bool mayWrite(Operation &op, Value root) {
  auto effects = getEffectsRecursively(&op);
  return !effects || llvm::any_of(*effects, [&](const MemoryEffects::EffectInstance &effect) {
    if (!isa<MemoryEffects::Write>(effect.getEffect()))
      return false;
    Value written = effect.getValue() ? originOf(effect.getValue()).root : Value();
    return !written || written == root;
  });
}

bool ctxc::staysSame(Value memref, Operation *from, Operation *to) {
  Value root = originOf(memref).root;
  if (!root || from->getBlock() != to->getBlock())
    return false;
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode())
    if (mayWrite(*op, root))
      return false;
  return true;
}

Value ctxc::rowsOf(Value memref) {
  Operation *op = memref.getDefiningOp();
  if (!op) {
    // All arguments that have rows have as many of them as the first.
    kernel::ArgAttr role = kernel::roleOf(memref);
    if (!role || role.isOfVisible())
      return {};
    for (Operation *user : memref.getParentBlock()->getArgument(0).getUsers())
      if (auto dim = dyn_cast<memref::DimOp>(user); dim && dim.getConstantIndex() == 0)
        return dim;
    return {};
  }
  OpFoldResult size;
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    size = alloc.getMixedSizes().front();
  else if (auto view = dyn_cast<memref::SubViewOp>(op); view && !view.getDroppedDims().test(0))
    size = view.getMixedSizes().front();
  else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
    size = expand.getMixedOutputShape().front();
  else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op);
           collapse && collapse.getReassociationIndices().front().size() == 1)
    return rowsOf(collapse.getSrc());
  else if (auto cast = dyn_cast<memref::CastOp>(op))
    return rowsOf(cast.getSource());
  return dyn_cast_if_present<Value>(size);
}

Value ctxc::rowsOf(OpBuilder &b, Location loc, Value memref) {
  Value known = rowsOf(memref);
  return known ? known : memref::DimOp::create(b, loc, memref, 0).getResult();
}

linalg::FillOp ctxc::zerosFor(Operation *op, Value y) {
  Operation *last = nullptr;
  for (Operation *user : y.getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && here->isBeforeInBlock(op) && (!last || last->isBeforeInBlock(here)))
      last = here;
  }
  auto fill = dyn_cast_or_null<linalg::FillOp>(last);
  return fill && matchPattern(fill.value(), m_AnyZeroFloat()) ? fill : linalg::FillOp();
}
