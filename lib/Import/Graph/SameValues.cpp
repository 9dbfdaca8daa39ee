#include "SameValues.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ctxc;

bool ctxc::pt2::areSame(Value a, Value b, unsigned depth) {
  if (a == b)
    return true;
  Operation *one = a.getDefiningOp(), *two = b.getDefiningOp();
  return one && two && depth && one->getName() == two->getName() && a.getType() == b.getType() &&
         isMemoryEffectFree(one) && one->getNumResults() == 1 &&
         one->getNumOperands() == two->getNumOperands() &&
         one->getAttrDictionary() == two->getAttrDictionary() &&
         llvm::all_of(llvm::zip(one->getOperands(), two->getOperands()), [&](auto pair) {
           return areSame(std::get<0>(pair), std::get<1>(pair), depth - 1);
         });
}

bool ctxc::pt2::areAllSame(ArrayRef<Value> values) {
  return llvm::all_of(values, [&](Value value) { return areSame(values.front(), value); });
}
