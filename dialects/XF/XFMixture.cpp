// The ops of mixtures of experts: type inference, facts, and their part in control.
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/InferTypes.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc::xf;

//===----------------------------------------------------------------------===//
// Type inference
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.top_k", {{adaptor.getScores().getType()}})))
    return failure();
  auto scores = ranked(adaptor.getScores().getType());
  int64_t k = adaptor.getK();
  // C1
  if (scores.getRank() != 1 || k < 1 || k > scores.getDimSize(0))
    return emitOptionalError(loc, "'xf.top_k' op selects ", k, " entries of ", scores,
                             "; it needs a vector, and from 1 to all of its entries");
  // C2
  int64_t count = scores.getDimSize(0), groups = valueOr(adaptor.getProperties().groups, 1),
          keep = valueOr(adaptor.getProperties().keep, 1);
  if (groups != 1 && (groups < 1 || count % groups || count / groups < 2 || keep < 1 ||
                      keep > groups || k > keep * (count / groups)))
    return emitOptionalError(loc, "'xf.top_k' op selects ", k, " entries of ", keep, " of ", groups,
                             " groups of ", scores,
                             "; it needs groups of one size, of two entries "
                             "or more, and enough of them kept");
  types.push_back(RankedTensorType::get({k}, IntegerType::get(context, 32)));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.gather",
                         {{adaptor.getData().getType()}, {adaptor.getSelected().getType(), 1}})))
    return failure();
  auto data = ranked(adaptor.getData().getType());
  // C1
  if (data.getRank() != 1 && data.getRank() != 2)
    return emitOptionalError(loc, "'xf.gather' op takes entries of ", data,
                             "; it needs a vector or a matrix");
  SmallVector<int64_t> shape(data.getShape());
  shape[0] = ranked(adaptor.getSelected().getType()).getDimSize(0);
  types.push_back(activation(context, shape));
  return success();
}

LogicalResult ExpertLinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.expert_linear",
                         {{adaptor.getBank().getType(), 3},
                          {adaptor.getSelected().getType(), 1},
                          {adaptor.getData().getType()}})))
    return failure();
  auto bank = ranked(adaptor.getBank().getType()), x = ranked(adaptor.getData().getType());
  int64_t in = bank.getDimSize(adaptor.getTransposed() ? 1 : 2);
  int64_t out = bank.getDimSize(adaptor.getTransposed() ? 2 : 1);
  int64_t k = ranked(adaptor.getSelected().getType()).getDimSize(0);
  // C1
  if (x.getShape().back() != in)
    return emitOptionalError(loc, "'xf.expert_linear' op multiplies matrices of ", in, " inputs, ",
                             bank, ", with ", x, "; the last dimension must be ", in);
  // C2
  if (x.getRank() > 2 || (x.getRank() == 2 && x.getDimSize(0) != k))
    return emitOptionalError(loc, "'xf.expert_linear' op selects ", k, " experts for ", x,
                             "; it needs one vector, or a row for each expert");
  // C3
  if (k > bank.getDimSize(0))
    return emitOptionalError(loc, "'xf.expert_linear' op selects ", k, " experts of ",
                             bank.getDimSize(0));
  types.push_back(activation(context, {k, out}));
  return success();
}

LogicalResult CombineOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.combine",
                         {{adaptor.getWeights().getType()}, {adaptor.getData().getType()}})))
    return failure();
  auto w = ranked(adaptor.getWeights().getType()), y = ranked(adaptor.getData().getType());
  // C1
  if (w.getRank() != 1 || y.getRank() < 2 || y.getDimSize(0) != w.getDimSize(0))
    return emitOptionalError(loc, "'xf.combine' op weighs ", y, " by ", w,
                             "; it needs a vector of weights, one for each row");
  types.push_back(activation(context, y.getShape().drop_front()));
  return success();
}

LogicalResult OuterOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.outer",
                         {{adaptor.getWeights().getType()}, {adaptor.getData().getType()}})))
    return failure();
  auto w = ranked(adaptor.getWeights().getType()), x = ranked(adaptor.getData().getType());
  // C1
  if (w.getRank() != 1 || x.getRank() != 1)
    return emitOptionalError(loc, "'xf.outer' op joins ", w, " and ", x, "; both must be vectors");
  types.push_back(activation(context, {w.getDimSize(0), x.getDimSize(0)}));
  return success();
}

//===----------------------------------------------------------------------===//
// FactsOpInterface
//===----------------------------------------------------------------------===//

Facts GatherOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.vector = anyZero(facts); // a selection may vanish where the whole does not
  return facts;
}

// Each slot multiplies with a generic matrix (see LinearOp).
Facts ExpertLinearOp::inferFacts(ArrayRef<Facts> operands) {
  if (operands[0].isZero() || operands[2].isZero())
    return Facts::constant(0, operands[0].isZero() ? operands[0].why : operands[2].why);
  if (!isGeneric(getBank()))
    return {Zeros::OpenSet, Zeros::OpenSet, std::nullopt, "its matrices are computed"};
  Zeros rows =
      ranked(getData().getType()).getRank() == 1 ? operands[2].vector : anyZero(operands[2]);
  // A single slot may vanish although the others do not.
  Facts facts{std::max(Zeros::NullSet, rows), std::max(Zeros::NullSet, operands[2].vector),
              std::nullopt, operands[2].why};
  facts.free = rows != Zeros::OpenSet && coversOutput();
  return facts;
}

Facts CombineOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &w = operands[0], &y = operands[1];
  if (w.isZero() || y.isZero())
    return Facts::constant(0, w.isZero() ? w.why : y.why);
  auto shapeless = [](Value value) {
    while (auto shape = value.getDefiningOp<ReshapeOp>())
      value = shape.getData();
    return value;
  };
  bool isOfSquares = shapeless(getWeights()) == shapeless(getData()) &&
                     ranked(getData().getType()).getNumElements() ==
                         ranked(getWeights().getType()).getNumElements();
  Zeros zeros = isOfSquares ? w.vector : std::max({Zeros::NullSet, anyZero(w), anyZero(y)});
  Facts facts{zeros, zeros, std::nullopt, y.why.empty() ? w.why : y.why};
  if (isOfSquares || (w.floor.value_or(-1) >= 0 && y.floor.value_or(-1) >= 0))
    facts.floor = 0.0;
  if (w.bound && y.bound)
    facts.bound = *w.bound * *y.bound * ranked(getWeights().getType()).getDimSize(0);
  facts.free = !isOfSquares && y.free && anyZero(w) != Zeros::OpenSet;
  return facts;
}

Facts OuterOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &w = operands[0], &x = operands[1];
  if (w.isZero() || x.isZero())
    return Facts::constant(0, w.isZero() ? w.why : x.why);
  Facts facts{std::max(anyZero(w), anyZero(x)), std::max(w.vector, x.vector), std::nullopt,
              w.why.empty() ? x.why : w.why};
  if (w.bound && x.bound)
    facts.bound = *w.bound * *x.bound;
  return facts;
}

//===----------------------------------------------------------------------===//
// AssignableOpInterface: a rank-1 change for each selected expert
//===----------------------------------------------------------------------===//

OpOperand &ExpertLinearOp::getParameterOperand() { return getBankMutable(); }
OpOperand &ExpertLinearOp::getDataOperand() { return getDataMutable(); }
Obligation ExpertLinearOp::getObligation() { return Obligation::NonzeroVector; }
ChangeForm ExpertLinearOp::getChangeForm() { return ChangeForm::Rank1; }
StringRef ExpertLinearOp::getLemma(ControlRole role) {
  return role == ControlRole::Input ? "input controllability of MLPs"
                                    : "output controllability of mixture of experts";
}
// Slots have different matrices only if no expert is selected twice.
bool ExpertLinearOp::coversOutput() { return getSelected().getDefiningOp<TopKOp>() != nullptr; }

//===----------------------------------------------------------------------===//
// SolvableOpInterface
//===----------------------------------------------------------------------===//

Solvability ExpertLinearOp::getSolvability(unsigned, std::string &reason) {
  reason = "a fixed matrix reaches only the span of its columns";
  return Solvability::No;
}
Value ExpertLinearOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("a matrix is not solved for its input");
}

Solvability OuterOp::getSolvability(unsigned, std::string &reason) {
  reason = "multiples of one vector are not every target";
  return Solvability::No;
}
Value OuterOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("an outer product is not solvable");
}

static constexpr unsigned weightsIndex = 0, dataIndex = 1;

Solvability CombineOp::getSolvability(unsigned index, std::string &reason) {
  if (index == dataIndex)
    return Solvability::Conditional;
  reason = "weights reach only the span of what they weigh";
  return Solvability::No;
}

SmallVector<LinkCondition> CombineOp::getConditions(unsigned, Split split) {
  // LeastNorm needs Σ w_i² l_i ≠ 0; l_i ≠ 0 is the obligation of the site itself.
  return {{weightsIndex, split == Split::Even ? Obligation::NonzeroSum : Obligation::NonzeroVector,
           "output controllability of mixture of experts"}};
}

bool CombineOp::isUnderdetermined(unsigned) { return true; }

/// The change of y that changes Σ w_j y_j by `delta`.
static Value distribute(OpBuilder &b, Location loc, Value weights, Value delta, Value leverage) {
  int64_t k = ranked(weights.getType()).getDimSize(0);
  Value numerator, share; // slot j gets numerator_j / Σ_i w_i share_i
  if (leverage) {
    numerator = MulOp::create(b, loc, weights, leverage);
    share = ReshapeOp::create(b, loc, activation(b.getContext(), {k, 1}), numerator);
  } else {
    numerator = createOnes(b, loc, {k});
    share = createOnes(b, loc, {k, 1});
  }
  Value sum = CombineOp::create(b, loc, weights, share);
  Value shares = DivOp::create(b, loc, numerator, sum);
  auto type = ranked(delta.getType());
  if (type.getRank() == 1)
    return OuterOp::create(b, loc, shares, delta);
  SmallVector<int64_t> shape{k};
  llvm::append_range(shape, type.getShape());
  Value flat =
      ReshapeOp::create(b, loc, activation(b.getContext(), {type.getNumElements()}), delta);
  Value change = OuterOp::create(b, loc, shares, flat);
  return ReshapeOp::create(b, loc, activation(b.getContext(), shape), change);
}

Value CombineOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange operands) {
  return distribute(b, getLoc(), operands[weightsIndex], target, {});
}

Value CombineOp::buildSplit(OpBuilder &b, unsigned, Value target, ValueRange operands,
                            Value leverage) {
  Value weights = operands[weightsIndex], current = operands[dataIndex];
  Value sum = CombineOp::create(b, getLoc(), weights, current);
  Value delta = SubOp::create(b, getLoc(), target, sum);
  Value change = distribute(b, getLoc(), weights, delta, leverage);
  return AddOp::create(b, getLoc(), current, change);
}
