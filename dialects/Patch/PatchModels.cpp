// How the patches of xf's parameterised ops are formed and applied: the external models of
// PatchableOpInterface.
#include "dialects/Patch/Patch.h"
#include "dialects/Patch/PatchNames.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ctxc::patch {
namespace {

template <typename Model, typename Op>
using Patchable = PatchableOpInterface::ExternalModel<Model, Op>;

xf::AssignableOpInterface assignable(Operation *op) { return cast<xf::AssignableOpInterface>(op); }

Value dataOf(Operation *op, ValueRange operands) {
  return operands[assignable(op).getDataOperand().getOperandNumber()];
}
Value parameterOf(Operation *op, ValueRange operands) {
  return operands[assignable(op).getParameterOperand().getOperandNumber()];
}

/// Of a parameter that is changed entry by entry: one delta.
SmallVector<Type> deltaType(Operation *op) {
  Value parameter = assignable(op).getParameterOperand().get();
  auto type = cast<RankedTensorType>(parameter.getType());
  return {RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext()))};
}

/// p + Δp
Value applyDelta(OpBuilder &b, Operation *op, ValueRange operands, Value delta) {
  Value parameter = parameterOf(op, operands);
  return ApplyDeltaOp::create(b, renamed(parameter.getLoc(), "_patched"), delta.getType(),
                              parameter, delta);
}

struct LinearPatch : Patchable<LinearPatch, xf::LinearOp> {
  SmallVector<Type> getPartTypes(Operation *op) const {
    auto linear = cast<xf::LinearOp>(op);
    return {linear.getType(), linear.getData().getType()};
  }
  PatchForm getPatchForm(Operation *op) const {
    return {PatchForm::Rank1, cast<xf::LinearOp>(op).getTransposed()};
  }
  SmallVector<Value> buildParts(Operation *op, OpBuilder &b, const PatchRequest &request) const {
    Value data = dataOf(op, request.operands);
    ObligationOp::create(b, op->getLoc(), Condition::nonzero_vector, data, Value(), request.index,
                         request.lemma);
    auto rank1 = Rank1Op::create(b, renamed(op->getLoc(), "_uv"), request.target.getType(),
                                 data.getType(), request.target, request.result, data);
    return {rank1.getU(), rank1.getV()};
  }
  bool appliesToResult(Operation *) const { return true; }
  Value buildPatched(Operation *op, OpBuilder &b, ValueRange operands, Value result,
                     ValueRange parts) const {
    return ApplyRank1Op::create(b, op->getLoc(), result.getType(), result, parts[0], parts[1],
                                dataOf(op, operands));
  }
};

/// `vector` once for each of k slots.
Value eachSlot(OpBuilder &b, Location loc, int64_t k, Value vector) {
  return xf::OuterOp::create(b, loc, xf::createOnes(b, loc, {k}), vector);
}

struct BiasPatch : Patchable<BiasPatch, xf::BiasOp> {
  SmallVector<Type> getPartTypes(Operation *op) const { return deltaType(op); }
  PatchForm getPatchForm(Operation *) const { return {}; }
  SmallVector<Value> buildParts(Operation *op, OpBuilder &b, const PatchRequest &request) const {
    return {xf::SubOp::create(b, renamed(op->getLoc(), "_delta"), request.target, request.result)};
  }
  Value buildPatched(Operation *op, OpBuilder &b, ValueRange operands, Value,
                     ValueRange parts) const {
    Value patched = applyDelta(b, op, operands, parts[0]);
    return xf::BiasOp::create(b, op->getLoc(), dataOf(op, operands), patched);
  }
};

struct ScalePatch : Patchable<ScalePatch, xf::ScaleOp> {
  SmallVector<Type> getPartTypes(Operation *op) const { return deltaType(op); }
  PatchForm getPatchForm(Operation *) const { return {}; }
  bool formsFromResult(Operation *) const { return false; }
  SmallVector<Value> buildParts(Operation *op, OpBuilder &b, const PatchRequest &request) const {
    return {SolveScaleOp::create(b, renamed(op->getLoc(), "_delta"), deltaType(op).front(),
                                 request.update, request.target, parameterOf(op, request.operands),
                                 dataOf(op, request.operands), cast<xf::ScaleOp>(op).getOffset(),
                                 request.index)};
  }
  Value buildPatched(Operation *op, OpBuilder &b, ValueRange operands, Value,
                     ValueRange parts) const {
    Value patched = applyDelta(b, op, operands, parts[0]);
    return xf::ScaleOp::create(b, op->getLoc(), dataOf(op, operands), patched,
                               cast<xf::ScaleOp>(op).getOffset());
  }
};

/// A rank-1 change for each selected expert, and which expert it is of.
struct ExpertLinearPatch : Patchable<ExpertLinearPatch, xf::ExpertLinearOp> {
  static constexpr unsigned selectedIndex = 1;

  SmallVector<Type> getPartTypes(Operation *op) const {
    auto linear = cast<xf::ExpertLinearOp>(op);
    auto u = cast<RankedTensorType>(linear.getType());
    auto data = cast<RankedTensorType>(linear.getData().getType());
    auto v = RankedTensorType::get({u.getDimSize(0), data.getShape().back()}, u.getElementType());
    return {u, v, linear.getSelected().getType()};
  }
  PatchForm getPatchForm(Operation *op) const {
    return {PatchForm::Rank1EachSlice, cast<xf::ExpertLinearOp>(op).getTransposed()};
  }
  SmallVector<Value> buildParts(Operation *op, OpBuilder &b, const PatchRequest &request) const {
    Value data = dataOf(op, request.operands);
    Location loc = renamed(op->getLoc(), "_uv");
    auto rank1 = Rank1Op::create(b, loc, request.target.getType(), data.getType(), request.target,
                                 request.result, data);
    ObligationOp::create(b, op->getLoc(), Condition::nonzero_vector, data, rank1.getU(),
                         request.index, request.lemma);
    Value v = rank1.getV();
    if (cast<RankedTensorType>(v.getType()).getRank() == 1) { // one vector for all slots
      int64_t k = cast<RankedTensorType>(request.target.getType()).getDimSize(0);
      v = eachSlot(b, loc, k, v);
    }
    return {rank1.getU(), v, request.operands[selectedIndex]};
  }
  bool appliesToResult(Operation *) const { return true; }
  Value buildPatched(Operation *op, OpBuilder &b, ValueRange operands, Value result,
                     ValueRange parts) const {
    return ApplyExpertRank1Op::create(b, op->getLoc(), result.getType(), result, parts[0], parts[1],
                                      parts[2], dataOf(op, operands), operands[selectedIndex]);
  }
  // A change u vᵀ of expert j moves its output by at most ‖u‖ ‖v‖ ‖h_j‖.
  Value buildLeverage(Operation *op, OpBuilder &b, ValueRange operands) const {
    Value data = dataOf(op, operands);
    auto type = cast<RankedTensorType>(data.getType());
    if (type.getRank() == 1)
      return {};
    auto norms = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
    return SquaredNormsOp::create(b, op->getLoc(), norms, data);
  }
};

/// A change for each selected row, and which row it is of. A row is a matrix of one column: u_j is
/// its change, and v_j the number 1.
struct GatherPatch : Patchable<GatherPatch, xf::GatherOp> {
  static constexpr unsigned selectedIndex = 1;

  SmallVector<Type> getPartTypes(Operation *op) const {
    auto gather = cast<xf::GatherOp>(op);
    auto u = cast<RankedTensorType>(gather.getType());
    auto v = RankedTensorType::get({u.getDimSize(0), 1}, u.getElementType());
    return {u, v, gather.getSelected().getType()};
  }
  PatchForm getPatchForm(Operation *) const { return {PatchForm::Rank1EachSlice}; }
  SmallVector<Value> buildParts(Operation *op, OpBuilder &b, const PatchRequest &request) const {
    Location loc = renamed(op->getLoc(), "_delta");
    int64_t k = cast<RankedTensorType>(request.target.getType()).getDimSize(0);
    Value u = xf::SubOp::create(b, loc, request.target, request.result);
    Value v = eachSlot(b, loc, k, xf::createOnes(b, loc, {1}));
    return {u, v, request.operands[selectedIndex]};
  }
  bool appliesToResult(Operation *) const { return true; }
  Value buildPatched(Operation *op, OpBuilder &b, ValueRange operands, Value result,
                     ValueRange parts) const {
    Value one = xf::createOnes(b, op->getLoc(), {1});
    return ApplyExpertRank1Op::create(b, op->getLoc(), result.getType(), result, parts[0], parts[1],
                                      parts[2], one, operands[selectedIndex]);
  }
};

} // namespace

void attachPatchModels(MLIRContext &context) {
  xf::LinearOp::attachInterface<LinearPatch>(context);
  xf::BiasOp::attachInterface<BiasPatch>(context);
  xf::ScaleOp::attachInterface<ScalePatch>(context);
  xf::ExpertLinearOp::attachInterface<ExpertLinearPatch>(context);
  xf::GatherOp::attachInterface<GatherPatch>(context);
}

} // namespace ctxc::patch
