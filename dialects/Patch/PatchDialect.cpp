#include "ctxc/Numerics/Update.h"
#include "dialects/Patch/Patch.h"
#include "dialects/Patch/UpdateValues.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ctxc::patch;

#define CTXC_UPDATE(NAME, TEXT, HELP)                                                              \
  static_assert(int32_t(UpdateKind::TEXT) == int32_t(ctxc::Update::NAME));
#include "ctxc/Numerics/Updates.def"
static_assert(std::size(ctxc::allUpdates) == getMaxEnumValForUpdateKind() + 1,
              "PatchAttrs.td lists the updates as Updates.def does");

llvm::cl::ValuesClass ctxc::patch::updateValues() {
  return {
#define CTXC_UPDATE(NAME, TEXT, HELP) clEnumValN(UpdateKind::TEXT, #TEXT, HELP),
#include "ctxc/Numerics/Updates.def"
  };
}

#include "dialects/Patch/PatchDialect.cpp.inc"
#include "dialects/Patch/PatchEnums.cpp.inc"
#include "dialects/Patch/PatchInterfaces.cpp.inc"

namespace ctxc::patch {
void attachPatchModels(MLIRContext &context);
} // namespace ctxc::patch

void PatchDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Patch/PatchOps.cpp.inc"
      >();
  attachPatchModels(*getContext());
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
      return emitOpError("maps ") << x.getType() << " to " << y.getType() << " by a matrix of "
                                  << in << " inputs and " << out << " outputs";
  }
  return success();
}

LogicalResult ExpertLinearsOp::verify() {
  if (getData().empty() || getData().size() != getResults().size())
    return emitOpError("has ") << getData().size() << " data operands and " << getResults().size()
                               << " results; it needs one result for each of at least one operand";
  auto bank = ranked(getBank());
  int64_t in = bank.getDimSize(getTransposed() ? 1 : 2),
          out = bank.getDimSize(getTransposed() ? 2 : 1);
  for (auto [selected, x, y] : llvm::zip(getSelected(), getData(), getResults())) {
    // C1
    int64_t k = ranked(selected).getDimSize(0);
    ArrayRef<int64_t> data = ranked(x).getShape();
    if ((data != ArrayRef{in} && data != ArrayRef{k, in}) ||
        ranked(y).getShape() != ArrayRef{k, out} || x.getType() != getData().front().getType() ||
        selected.getType() != getSelected().front().getType())
      return emitOpError("maps ") << x.getType() << " to " << y.getType() << " by " << k
                                  << " matrices of " << in << " inputs and " << out
                                  << " outputs; it needs (in) or (k, in) and (k, out), of the same "
                                     "types in both runs";
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
    return emitOpError("solves a scale of type ")
           << getScale().getType() << " for a target of type " << getTarget().getType()
           << "; the shapes must be equal";
  return success();
}

LogicalResult ApplyExpertRank1Op::verify() {
  ArrayRef<int64_t> base = ranked(getBase()).getShape(), v = ranked(getV()).getShape(),
                    data = ranked(getData()).getShape();
  int64_t k = ranked(getSelected()).getDimSize(0);
  // C1
  if (base.size() != 2 || v.size() != 2 || base[0] != k || v[0] != k ||
      (data != v && data != v.drop_front()))
    return emitOpError("adds to ") << getBase().getType() << " a change at " << getData().getType()
                                   << " by " << getV().getType() << " for " << k
                                   << " experts; it needs (k, out), (in) or (k, in), (k, in)";
  return success();
}

LogicalResult SquaredNormsOp::verify() {
  // C1
  ArrayRef<int64_t> shape = ranked(getData()).getShape();
  if (shape.empty() || shape.drop_back() != ranked(getResult()).getShape())
    return emitOpError("gives the norms of ")
           << getData().getType() << " as " << getResult().getType()
           << "; that must be its shape without the last dimension";
  return success();
}

LogicalResult ObligationOp::verify() {
  if (!getChange())
    return success();
  auto vectors = [](Value v) {
    RankedTensorType type = ranked(v);
    return type.getRank() ? type.getNumElements() / type.getShape().back() : 0;
  };
  // C1
  int64_t have = vectors(getData());
  if (getCondition() != Condition::nonzero_vector || (have != 1 && have != vectors(getChange())))
    return emitOpError("is for a change of type ")
           << getChange().getType() << " at " << getData().getType()
           << "; it needs nonzero_vector, and one vector for each of the data's";
  return success();
}

static LogicalResult verifyParts(Operation *op, TypeRange parts) {
  auto isFloat = [](Type type) { return isa<FloatType>(cast<ShapedType>(type).getElementType()); };
  bool few = parts.size() == 1 || parts.size() == 2;
  if ((few && llvm::all_of(parts, isFloat)) ||
      (parts.size() == 3 && llvm::all_of(parts.drop_back(), isFloat) && !isFloat(parts.back())))
    return success();
  return op->emitOpError("has parts (")
         << parts << "); a patch is one delta, or u and v, or u, v and indices";
}

LogicalResult StoreOp::verify() { return verifyParts(*this, getParts().getTypes()); }
LogicalResult LoadOp::verify() { return verifyParts(*this, getParts().getTypes()); }
