// Ops that read the context and are solved for what their own token gives: of a convolution, the
// current tap is a known factor, and what the other taps add stays as it is.
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ctxc::xf;

bool ctxc::xf::isTap(Operation *op) { return isa_and_nonnull<TapOpInterface>(op); }

Value ctxc::xf::buildTapSolve(Operation *tap, OpBuilder &b, Value target, Value x, Value y,
                              ValueRange operands) {
  Location loc = tap->getLoc();
  Value factor = cast<TapOpInterface>(tap).buildFactor(b, operands);
  Value rest = SubOp::create(b, loc, target, y);
  return AddOp::create(b, loc, x, DivOp::create(b, loc, rest, factor));
}

Value ctxc::xf::buildTapMoved(Operation *tap, OpBuilder &b, Value moved, Value x, Value y,
                              ValueRange operands) {
  Location loc = tap->getLoc();
  Value factor = cast<TapOpInterface>(tap).buildFactor(b, operands);
  Value change = SubOp::create(b, loc, moved, x);
  return AddOp::create(b, loc, y, MulOp::create(b, loc, change, factor));
}

namespace {

/// W e_{k−1}: the weights of the current token.
struct ConvTap : TapOpInterface::ExternalModel<ConvTap, ConvOp> {
  unsigned getTokenOperand(Operation *op) const {
    return cast<ConvOp>(op).getDataMutable().getOperandNumber();
  }
  Value buildFactor(Operation *op, OpBuilder &b, ValueRange operands) const {
    auto conv = cast<ConvOp>(op);
    int64_t taps = cast<RankedTensorType>(conv.getWeight().getType()).getDimSize(1);
    auto type = RankedTensorType::get({taps}, b.getF32Type());
    SmallVector<float> last(taps, 0);
    last.back() = 1;
    Value one = SettingOp::create(b, op->getLoc(), type, "last_of_" + std::to_string(taps),
                                  DenseElementsAttr::get(type, ArrayRef(last)));
    return LinearOp::create(b, op->getLoc(), operands[conv.getWeightMutable().getOperandNumber()],
                            one, /*transposed=*/false);
  }
};

struct ConvSolve : SolvableOpInterface::ExternalModel<ConvSolve, ConvOp> {
  Solvability getSolvability(Operation *op, unsigned index, std::string &reason) const {
    auto conv = cast<ConvOp>(op);
    if (index != conv.getDataMutable().getOperandNumber())
      reason = "it is not solved for its weights";
    else if (!conv.getWeight().getDefiningOp<ParamOp>())
      reason = "its weights are computed, not stored ones";
    else
      return Solvability::Conditional;
    return Solvability::No;
  }
  Value buildSolve(Operation *op, OpBuilder &b, unsigned index, Value target,
                   ValueRange operands) const {
    IRMapping values;
    values.map(op->getOperands(), operands);
    Value y = b.clone(*op, values)->getResult(0);
    return buildTapSolve(op, b, target, operands[index], y, operands);
  }
  Value buildSplit(Operation *op, OpBuilder &b, unsigned index, Value target, ValueRange operands,
                   Value) const {
    return buildSolve(op, b, index, target, operands);
  }
  /// The weights of the current token are not zero.
  SmallVector<LinkCondition> getConditions(Operation *op, unsigned index, Split) const {
    return nonzeroFactors(op, index);
  }
};

} // namespace

void ctxc::xf::attachTapModels(MLIRContext &context) {
  ConvOp::attachInterface<ConvTap, ConvSolve>(context);
}
