#include "dialects/XF/Products.h"

using namespace mlir;
using namespace ctxc::xf;

bool ctxc::xf::handsOnMovers(SolvableOpInterface op, unsigned index) {
  if (isa<RoundOp>(op))
    return false; // a small change may move nothing
  std::string reason;
  switch (op.getSolvability(index, reason)) {
  case Solvability::Conditional:
    return true;
  case Solvability::Exact:
    return op->getNumOperands() == 1;
  case Solvability::No:
    return false;
  }
  llvm_unreachable("a solvability of no known kind");
}

bool ctxc::xf::isProduct(Operation *op) {
  auto link = dyn_cast<SolvableOpInterface>(op);
  std::string reason;
  return link && !isa<AssignableOpInterface>(op) && op->getNumOperands() == 2 &&
         op->getNumResults() == 1 && op->getOperand(0).getType() == op->getOperand(1).getType() &&
         op->getOperand(0).getType() == op->getResult(0).getType() &&
         link.getSolvability(0, reason) == Solvability::Conditional &&
         link.getSolvability(1, reason) == Solvability::Conditional;
}
