// A rotation has an inverse, by the opposite angles.
#include "dialects/XF/Rotation.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc::xf;

namespace {
struct RotarySolve : SolvableOpInterface::ExternalModel<RotarySolve, RotaryOp> {
  Solvability getSolvability(Operation *op, unsigned index, std::string &reason) const {
    if (index == cast<RotaryOp>(op).getDataMutable().getOperandNumber())
      return Solvability::Exact;
    reason = "it is not solved for its angles";
    return Solvability::No;
  }

  Value buildSolve(Operation *op, OpBuilder &b, unsigned, Value target, ValueRange operands) const {
    auto rotary = cast<RotaryOp>(op);
    Location loc = op->getLoc();
    Value frequencies = operands[rotary.getFrequenciesMutable().getOperandNumber()];
    Value opposite = TimesOp::create(b, loc, frequencies, APFloat(-1.0f));
    APFloat amplitude = rotary.getAmplitude();
    float inverse = 1.0f / amplitude.convertToFloat();
    auto turn = [&](Value x, Value by, float length) -> Value {
      return RotaryOp::create(b, loc, x.getType(), rotary.getStyle(), x, by, APFloat(length));
    };
    Value x = turn(target, opposite, inverse);
    if (double(inverse) * amplitude.convertToFloat() == 1)
      return x;
    // The inverse is rounded to float32; a step of Newton's method corrects the error.
    Value reached = turn(x, frequencies, amplitude.convertToFloat());
    Value rest = SubOp::create(b, loc, target, reached);
    return AddOp::create(b, loc, x, turn(rest, opposite, inverse));
  }
  /// There is one solution, so that nothing is to be split.
  Value buildSplit(Operation *op, OpBuilder &b, unsigned index, Value target, ValueRange operands,
                   Value) const {
    return buildSolve(op, b, index, target, operands);
  }
};
} // namespace

void ctxc::xf::attachRotationModels(MLIRContext &context) {
  RotaryOp::attachInterface<RotarySolve>(context);
}
