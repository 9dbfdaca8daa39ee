// How ops take part in control: which targets they can absorb (AssignableOpInterface), and how
// output chains are solved through them (SolvableOpInterface).
#include "dialects/XF/FixedMatrix.h"
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
Value ctxc::xf::findGramVector(Operation *op) {
  auto outer = dyn_cast_or_null<LinearOp>(op);
  auto inner = outer ? outer.getData().getDefiningOp<LinearOp>() : LinearOp();
  auto nameOf = [](LinearOp linear) {
    auto param = linear.getWeight().getDefiningOp<ParamOp>();
    return param ? param.getName() : StringRef();
  };
  bool isGram = inner && outer.getTransposed() != inner.getTransposed() &&
                outer.getWeight().getType() == inner.getWeight().getType() &&
                !nameOf(outer).empty() && nameOf(outer) == nameOf(inner) &&
                cast<RankedTensorType>(inner.getData().getType()).getRank() == 1;
  return isGram ? inner.getData() : Value();
}

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

bool ctxc::xf::isGeneric(Value parameter) {
  auto param = parameter.getDefiningOp<ParamOp>();
  return param && !param.getConstant();
}

ParamOp ctxc::xf::findUnknownConstant(BlockOp block) {
  for (auto param : block.getBody().getOps<ParamOp>())
    if (param.getConstant() && llvm::any_of(param->getUsers(), [](Operation *user) {
          return !isa<OpaqueContextualOp>(user);
        }))
      return param;
  return {};
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

/// The inverse is rounded to float32; a step of Newton's method corrects the error.
static Value corrected(OpBuilder &b, Location loc, Value target,
                       llvm::function_ref<Value(Value)> apply,
                       llvm::function_ref<Value(Value)> invert) {
  Value x = invert(target);
  Value rest = SubOp::create(b, loc, target, apply(x));
  return AddOp::create(b, loc, x, invert(rest));
}

Solvability LinearOp::getSolvability(unsigned index, std::string &reason) {
  if (index == getDataMutable().getOperandNumber() && inverseOf(*this))
    return Solvability::Exact;
  return refuse(reason, "a fixed matrix reaches only the span of its columns");
}
Value LinearOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange operands) {
  std::vector<double> inverse = *inverseOf(*this);
  SmallVector<float> numbers(inverse.begin(), inverse.end());
  auto setting = getWeight().getDefiningOp<SettingOp>();
  Value inverted = SettingOp::create(
      b, getLoc(), setting.getType(),
      (setting.getName() + (getTransposed() ? " transposed" : "") + " inverted").str(),
      DenseElementsAttr::get(cast<RankedTensorType>(setting.getType()), ArrayRef(numbers)));
  return corrected(
      b, getLoc(), target,
      [&](Value x) { return LinearOp::create(b, getLoc(), operands[0], x, getTransposed()); },
      [&](Value y) { return LinearOp::create(b, getLoc(), inverted, y, /*transposed=*/false); });
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

/// Operand `index` of the product of findDirection.
static Value solveDirection(Operation *op, OpBuilder &b, unsigned index, Value target) {
  NormalizeOp norm = findDirection(op);
  Location loc = op->getLoc();
  Value length = lengthOf(b, loc, norm.getKind(), target),
        direction = DivOp::create(b, loc, target, length);
  if (index == 0)
    return direction;
  // The length that the norm gives it, to the last digit.
  Value unit = NormalizeOp::create(b, loc, norm.getKind(), direction, norm.getEps());
  Value own = lengthOf(b, loc, norm.getKind(), unit);
  return isa<DivOp>(op) ? DivOp::create(b, loc, own, length) : DivOp::create(b, loc, length, own);
}

Solvability MulOp::getSolvability(unsigned index, std::string &reason) {
  if (findDirection(*this))
    return Solvability::Exact;
  if (index == 1 && getLhs().getType() != getRhs().getType())
    return refuse(reason, "one number multiplies a whole vector, which leaves its direction");
  return Solvability::Conditional;
}
Value MulOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  if (findDirection(*this))
    return solveDirection(*this, b, index, target);
  return DivOp::create(b, getLoc(), target, operands[1 - index]);
}

Solvability DivOp::getSolvability(unsigned index, std::string &reason) {
  if (findDirection(*this))
    return Solvability::Exact;
  if (index == 0)
    return Solvability::Conditional;
  return refuse(reason, "no divisor brings a quotient of zero to another target");
}
SmallVector<LinkCondition> DivOp::getConditions(unsigned, Split) {
  return {{1, Obligation::FiniteElements, "a known factor of the output chain"}};
}
Value DivOp::buildSolve(OpBuilder &b, unsigned index, Value target, ValueRange operands) {
  if (findDirection(*this))
    return solveDirection(*this, b, index, target);
  // A zero divisor counts as one, in its inverse as well.
  Value one = createOnes(b, getLoc(), cast<RankedTensorType>(operands[1].getType()).getShape());
  return DivOp::create(b, getLoc(), target, DivOp::create(b, getLoc(), one, operands[1]));
}

Solvability TimesOp::getSolvability(unsigned, std::string &reason) {
  if (getFactor().isZero())
    return refuse(reason, "a factor of zero sends everything to zero");
  return Solvability::Exact;
}
Value TimesOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  float factor = getFactor().convertToFloat(), inverse = 1.0f / factor;
  if (double(inverse) * factor == 1)
    return TimesOp::create(b, getLoc(), target, APFloat(inverse));
  return corrected(
      b, getLoc(), target, [&](Value x) { return TimesOp::create(b, getLoc(), x, getFactor()); },
      [&](Value y) { return TimesOp::create(b, getLoc(), y, APFloat(inverse)); });
}

Solvability LeakyOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
/// What is negative is divided by the slope.
Value LeakyOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  Value above = ActivationOp::create(b, getLoc(), ActivationKind::relu, target);
  Value below = SubOp::create(b, getLoc(), target, above);
  APFloat slope = getSlope(), inverse(1 / slope.convertToFloat());
  Value solved = corrected(
      b, getLoc(), below, [&](Value x) { return TimesOp::create(b, getLoc(), x, slope); },
      [&](Value y) { return TimesOp::create(b, getLoc(), y, inverse); });
  return AddOp::create(b, getLoc(), above, solved);
}

Solvability PowerOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value PowerOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  return PowerOp::create(b, getLoc(), target, getExponent(), !getRoot());
}

Solvability RoundOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
/// Up to the rounding.
Value RoundOp::buildSolve(OpBuilder &, unsigned, Value target, ValueRange) { return target; }

Solvability ReshapeOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value ReshapeOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  return ReshapeOp::create(b, getLoc(), getData().getType(), target);
}

Solvability RotaryOp::getSolvability(unsigned index, std::string &reason) {
  if (index == getDataMutable().getOperandNumber())
    return Solvability::Exact;
  return refuse(reason, "a rotation is not solved for its frequencies");
}
/// The rotation back, by the opposite angles.
Value RotaryOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange operands) {
  APFloat inverse(1 / getAmplitude().convertToFloat());
  Value opposite = TimesOp::create(b, getLoc(), operands[1], APFloat(-1.0f));
  return corrected(
      b, getLoc(), target,
      [&](Value x) {
        return RotaryOp::create(b, getLoc(), x.getType(), getStyle(), x, operands[1],
                                getAmplitude());
      },
      [&](Value y) {
        return RotaryOp::create(b, getLoc(), y.getType(), getStyle(), y, opposite, inverse);
      });
}

Solvability NormalizeOp::getSolvability(unsigned, std::string &reason) {
  if (isSolvedInParts(*this))
    return Solvability::Exact;
  return refuse(reason, "a normalisation's image is bounded, so it cannot reach every target");
}
/// Of a direction: it has length 1.
Value NormalizeOp::buildSolve(OpBuilder &, unsigned, Value target, ValueRange) { return target; }

Solvability ActivationOp::getSolvability(unsigned, std::string &reason) {
  if (isLength(*this))
    return Solvability::Exact;
  return refuse(reason, stringifyActivationKind(getKind()) +
                            " does not reach every value, so no output of it can be prescribed");
}
/// Of a length, which is positive. Of a length of zero, what gives the least number.
Value ActivationOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  return create(b, getLoc(), ActivationKind::log, target);
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
