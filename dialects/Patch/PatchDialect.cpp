#include "dialects/Patch/Patch.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ctxc::patch;

#include "dialects/Patch/PatchDialect.cpp.inc"
#include "dialects/Patch/PatchEnums.cpp.inc"

void PatchDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Patch/PatchOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/Patch/PatchOps.cpp.inc"

static RankedTensorType ranked(Value v) { return cast<RankedTensorType>(v.getType()); }

LogicalResult LinearsOp::verify() {
  if (getData().empty() || getData().size() != getResults().size())
    return emitOpError("has ") << getData().size() << " data operands and " << getResults().size()
                               << " results; it needs one result for each of at least one operand";
  auto w = ranked(getWeight());
  int64_t in = w.getDimSize(getTransposed() ? 0 : 1), out = w.getDimSize(getTransposed() ? 1 : 0);
  for (auto [x, y] : llvm::zip(getData(), getResults())) {
    // C1
    if (ranked(x).getShape().empty() || ranked(x).getShape().back() != in ||
        ranked(y).getShape().empty() || ranked(y).getShape().back() != out ||
        ranked(x).getShape().drop_back() != ranked(y).getShape().drop_back())
      return emitOpError("maps ") << x.getType() << " to " << y.getType() << " by a matrix of " << in
                                  << " inputs and " << out << " outputs";
  }
  return success();
}

LogicalResult ApplyDeltaOp::verify() {
  // C1
  if (ranked(getParameter()).getShape() != ranked(getDelta()).getShape() ||
      ranked(getDelta()).getShape() != ranked(getResult()).getShape())
    return emitOpError("adds ") << getDelta().getType() << " to a parameter of type "
                                << getParameter().getType() << "; the shapes must be equal";
  return success();
}

LogicalResult SolveScaleOp::verify() {
  // C1
  if (ranked(getScale()).getShape() != ranked(getTarget()).getShape() ||
      ranked(getResult()).getShape() != ranked(getScale()).getShape())
    return emitOpError("solves a scale of type ") << getScale().getType() << " for a target of type "
                                                  << getTarget().getType()
                                                  << "; the shapes must be equal";
  return success();
}

static LogicalResult verifyParts(Operation *op, size_t parts) {
  if (parts != 1 && parts != 2)
    return op->emitOpError("has ") << parts << " parts; a patch is u and v, or one delta";
  return success();
}

LogicalResult StoreOp::verify() { return verifyParts(*this, getParts().size()); }
LogicalResult LoadOp::verify() { return verifyParts(*this, getParts().size()); }
