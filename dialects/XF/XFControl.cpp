// How ops take part in control: which targets they can absorb (AssignableOpInterface), and how
// output chains are solved through them (SolvableOpInterface).
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc::xf;

//===----------------------------------------------------------------------===//
// AssignableOpInterface
//===----------------------------------------------------------------------===//

bool ctxc::xf::coversWholeOutput(Operation *op) {
  auto assignable = cast<AssignableOpInterface>(op);
  auto data = cast<RankedTensorType>(assignable.getDataOperand().get().getType());
  if (assignable.getChangeForm() == ChangeForm::Rank1)
    return data.getNumElements() == data.getShape().back();
  auto parameter = cast<RankedTensorType>(assignable.getParameterOperand().get().getType());
  return parameter.getNumElements() == data.getNumElements();
}

OpOperand &LinearOp::getParameterOperand() { return getWeightMutable(); }
OpOperand &LinearOp::getDataOperand() { return getDataMutable(); }
Obligation LinearOp::getObligation() { return Obligation::NonzeroVector; }
ChangeForm LinearOp::getChangeForm() { return ChangeForm::Rank1; }
/// Whether `data` is the result of a norm, possibly after the norm's scale and bias.
static bool followsNorm(Value data) {
  Operation *op = data.getDefiningOp();
  while (isa_and_nonnull<ScaleOp, BiasOp>(op))
    op = cast<AssignableOpInterface>(op).getDataOperand().get().getDefiningOp();
  return isa_and_nonnull<NormalizeOp>(op);
}

StringRef LinearOp::getLemma(ControlRole role) {
  if (role == ControlRole::Output)
    return "output controllability of outer weight matrix";
  return followsNorm(getData()) ? "input controllability of pre-norm MLPs"
                                : "input controllability of MLPs";
}

OpOperand &BiasOp::getParameterOperand() { return getBiasMutable(); }
OpOperand &BiasOp::getDataOperand() { return getDataMutable(); }
Obligation BiasOp::getObligation() { return Obligation::None; }
ChangeForm BiasOp::getChangeForm() { return ChangeForm::Delta; }
StringRef BiasOp::getLemma(ControlRole role) {
  return role == ControlRole::Input ? "input controllability of biases"
                                    : "output controllability of outer bias";
}

OpOperand &ScaleOp::getParameterOperand() { return getScaleMutable(); }
OpOperand &ScaleOp::getDataOperand() { return getDataMutable(); }
Obligation ScaleOp::getObligation() { return Obligation::NonzeroElements; }
ChangeForm ScaleOp::getChangeForm() { return ChangeForm::Delta; }
StringRef ScaleOp::getLemma(ControlRole role) {
  return role == ControlRole::Input ? "input controllability of scales"
                                    : "output controllability of outer element-wise multiply";
}
Operation *ScaleOp::findNormMatrix() {
  auto norm = getData().getDefiningOp<NormalizeOp>();
  if (!norm || norm.getKind() != NormKind::rms || !norm->hasOneUse())
    return nullptr;
  auto matrix = norm.getData().getDefiningOp<LinearOp>();
  return matrix && matrix->hasOneUse() ? matrix.getOperation() : nullptr;
}

//===----------------------------------------------------------------------===//
// SolvableOpInterface
//===----------------------------------------------------------------------===//

Value ctxc::xf::createOnes(OpBuilder &b, Location loc, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, b.getF32Type());
  std::string name = "one";
  for (int64_t dim : shape)
    name += (name == "one" ? "_" : "x") + std::to_string(dim);
  return SettingOp::create(b, loc, type, name, DenseElementsAttr::get(type, APFloat(1.0f)));
}

SmallVector<LinkCondition> ctxc::xf::nonzeroFactors(Operation *op, unsigned index) {
  SmallVector<LinkCondition> conditions;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (i != index)
      conditions.push_back({i, Obligation::NonzeroElements, "a known factor of the output chain"});
  return conditions;
}

static Solvability refuse(std::string &reason, const Twine &text) {
  reason = text.str();
  return Solvability::No;
}

Solvability LinearOp::getSolvability(unsigned, std::string &reason) {
  return refuse(reason, "a fixed matrix reaches only the span of its columns");
}
Value LinearOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("a matrix is not solved for its input");
}

/// Ops with a parameter can be solved for their data, provided that the parameter is stored and
/// hence known.
static Solvability ofData(AssignableOpInterface op, unsigned index, Solvability how,
                          std::string &reason) {
  if (index != op.getDataOperand().getOperandNumber())
    return refuse(reason, "it is not solved for its parameter");
  if (!op.getParameterOperand().get().getDefiningOp<ParamOp>())
    return refuse(reason, "its parameter is computed, not a stored one");
  return how;
}

Solvability BiasOp::getSolvability(unsigned index, std::string &reason) {
  return ofData(*this, index, Solvability::Exact, reason);
}
Value BiasOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  // t − b is written as −(−t + b), so that the bias keeps its stored type and its op.
  APFloat minusOne(-1.0f);
  Value negated = TimesOp::create(b, getLoc(), target, minusOne);
  Value sum = BiasOp::create(b, getLoc(), negated, getBias());
  return TimesOp::create(b, getLoc(), sum, minusOne);
}

Solvability ScaleOp::getSolvability(unsigned index, std::string &reason) {
  return ofData(*this, index, Solvability::Conditional, reason);
}
Value ScaleOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  Value one = createOnes(b, getLoc(), cast<RankedTensorType>(target.getType()).getShape());
  Value scale = ScaleOp::create(b, getLoc(), one, getScale(), getOffset());
  return DivOp::create(b, getLoc(), target, scale);
}

Solvability AddOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value AddOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  return SubOp::create(b, getLoc(), target, operands[1 - index]);
}

Solvability SubOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value SubOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  if (index == 0)
    return AddOp::create(b, getLoc(), target, operands[1]);
  return SubOp::create(b, getLoc(), operands[0], target);
}

/// |t| of findDirection, of type tensor<1xf32>.
static Value lengthOf(OpBuilder &b, Location loc, NormKind kind, Value t) {
  auto type = cast<RankedTensorType>(t.getType());
  int64_t n = type.getNumElements();
  Value column = ReshapeOp::create(b, loc, RankedTensorType::get({n, 1}, type.getElementType()), t);
  Value squares = CombineOp::create(b, loc, t, column);
  if (kind == NormKind::rms)
    squares = TimesOp::create(b, loc, squares, APFloat(1.0f / n));
  return ActivationOp::create(b, loc, ActivationKind::sqrt, squares);
}

Solvability MulOp::getSolvability(unsigned index, std::string &reason) {
  if (findDirection(*this))
    return Solvability::Exact;
  if (index == 1 && getLhs().getType() != getRhs().getType())
    return refuse(reason, "one number multiplies a whole vector, which leaves its direction");
  return Solvability::Conditional;
}
Value MulOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  if (NormalizeOp norm = findDirection(*this)) {
    Value length = lengthOf(b, getLoc(), norm.getKind(), target),
          direction = DivOp::create(b, getLoc(), target, length);
    if (index == 0)
      return direction;
    // The length that the norm gives it, to the last digit.
    Value unit = NormalizeOp::create(b, getLoc(), norm.getKind(), direction, norm.getEps());
    return DivOp::create(b, getLoc(), length, lengthOf(b, getLoc(), norm.getKind(), unit));
  }
  return DivOp::create(b, getLoc(), target, operands[1 - index]);
}

Solvability TimesOp::getSolvability(unsigned, std::string &reason) {
  if (getFactor().isZero())
    return refuse(reason, "a factor of zero sends everything to zero");
  return Solvability::Exact;
}
Value TimesOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  float factor = getFactor().convertToFloat(), inverse = 1.0f / factor;
  Value x = TimesOp::create(b, getLoc(), target, APFloat(inverse));
  if (double(inverse) * factor == 1)
    return x;
  // The inverse is rounded to float32; a step of Newton's method corrects the error.
  Value reached = TimesOp::create(b, getLoc(), x, getFactor());
  Value rest = SubOp::create(b, getLoc(), target, reached);
  return AddOp::create(b, getLoc(), x, TimesOp::create(b, getLoc(), rest, APFloat(inverse)));
}

Solvability ReshapeOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value ReshapeOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  return ReshapeOp::create(b, getLoc(), getData().getType(), target);
}

Solvability NormalizeOp::getSolvability(unsigned, std::string &reason) {
  if (isSolvedInParts(*this))
    return Solvability::Exact;
  return refuse(reason, "a normalisation's image is bounded, so it cannot reach every target");
}
/// Of a direction: it has length 1.
Value NormalizeOp::buildSolve(OpBuilder &, unsigned, Value target, ValueRange) { return target; }

Solvability ActivationOp::getSolvability(unsigned, std::string &reason) {
  return refuse(reason, stringifyActivationKind(getKind()) +
                            " does not reach every value, so no output of it can be prescribed");
}
Value ActivationOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("an activation is not solvable");
}

Solvability SoftmaxOp::getSolvability(unsigned, std::string &reason) {
  return refuse(reason, "a softmax's entries are positive and sum to one");
}
Value SoftmaxOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("a softmax is not solvable");
}

Solvability ClampOp::getSolvability(unsigned, std::string &reason) {
  return refuse(reason, "a clamp's output stays inside its limits");
}
Value ClampOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("a clamp is not solvable");
}

Solvability SoftcapOp::getSolvability(unsigned, std::string &reason) {
  return refuse(reason, "a soft cap's output stays inside the cap");
}
Value SoftcapOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("a soft cap is not solvable");
}
