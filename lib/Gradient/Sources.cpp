// What depends on no argument of the block: parameters that are used as values, settings, the
// token.
#include "Models.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ctxc::gradient {

template <typename OpT> static llvm::Error pullBackOp(OpT, Tape &) {
  return llvm::Error::success(); // nothing is in front of it
}

/// Whether an op reads a parameter in place, from the weights.
static bool isStored(OpOperand &use) {
  return TypeSwitch<Operation *, bool>(use.getOwner())
      .Case([&](xf::LinearOp op) { return &use == &op.getWeightMutable(); })
      .Case([&](xf::BiasOp op) { return &use == &op.getBiasMutable(); })
      .Case([&](xf::ScaleOp op) { return &use == &op.getScaleMutable(); })
      .Case([&](xf::AttentionOp op) { return use.get() == op.getSinks(); })
      .Default(false);
}

static llvm::Error evaluateOp(xf::ParamOp op, Tape &tape) {
  if (llvm::all_of(op->getUses(), isStored))
    return llvm::Error::success();
  auto numbers = tape.parameter(op, op.getResult());
  if (!numbers)
    return numbers.takeError();
  int64_t size = cast<RankedTensorType>(op.getType()).getNumElements();
  tape.set(op.getResult(),
           Eigen::Map<const Eigen::RowVectorXf>(*numbers, size).replicate(tape.count(), 1));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::SettingOp op, Tape &tape) {
  Attribute value = tape.settingOf(op);
  if (!value)
    return makeError("'" + op.getName() + "' has no default and no layer gives it");
  SmallVector<double> numbers = xf::SettingOp::numbers(op.getType(), value);
  Eigen::Map<const Eigen::RowVectorXd> row(numbers.data(), numbers.size());
  tape.set(op.getResult(), row.cast<float>().replicate(tape.count(), 1));
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::PositionOp op, Tape &tape) {
  Rows positions(tape.count(), 1);
  for (auto [i, position] : llvm::enumerate(tape.getTokens().positions))
    positions(i, 0) = float(op.at(position));
  tape.set(op.getResult(), std::move(positions));
  return llvm::Error::success();
}

void attachSources(MLIRContext &context) {
  attach<xf::ParamOp, xf::SettingOp, xf::PositionOp>(context);
}

} // namespace ctxc::gradient
