#include "Functions.h"
#include "Calls.h"
#include "ctxc/Reference/RunFunction.h"
#include "ctxc/Support/Error.h"
#include <random>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

namespace {

/// One run of a function.
class FunctionRun {
public:
  FunctionRun(graph::FunctionOp function, ArrayRef<int64_t> positions) : function(function) {
    tokens.symbol = isa<StringAttr>(function.getTokens())
                        ? cast<StringAttr>(function.getTokens()).getValue()
                        : StringRef();
    tokens.count = positions.size();
    tokens.positions = positions;
    tokens.counted = function.getCounted();
  }

  /// The result's rows, one for each token; one row where no axis is the tokens'.
  llvm::Expected<Matrix> run(ArrayRef<Matrix> operands);
  /// An error where PyTorch may give another result as well.
  llvm::Error checkSettled() const {
    return open ? errorAt(open, "of '" + graph::CallOp(open).getTarget() + "' " + why)
                : llvm::Error::success();
  }

private:
  std::optional<Shape> shapeOf(Value value);
  llvm::Expected<Array> fromRows(const Matrix &rows, Value value, int64_t axis);
  llvm::Error call(graph::CallOp op);
  llvm::Error set(Value value, Array array);

  graph::FunctionOp function;
  Tokens tokens;
  llvm::DenseMap<Value, Array> values;
  graph::CallOp open; ///< the first call that left its result open, and why
  std::string why;
};

} // namespace

std::optional<Shape> FunctionRun::shapeOf(Value value) {
  Shape shape;
  for (Attribute size : cast<graph::SymbolicType>(value.getType()).getSizes()) {
    std::optional<int64_t> number = reference::sizeOf(size, tokens);
    if (!number || *number < 0)
      return std::nullopt;
    shape.push_back(*number);
  }
  return shape;
}

/// Between rows (tokens × outer × inner) and an array (outer × tokens × inner).
static void exchange(int64_t tokens, int64_t outer, int64_t inner,
                     llvm::function_ref<void(int64_t inRows, int64_t inArray)> visit) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        visit((t * outer + o) * inner + i, (o * tokens + t) * inner + i);
}

llvm::Expected<Array> FunctionRun::fromRows(const Matrix &rows, Value value, int64_t axis) {
  std::optional<Shape> shape = shapeOf(value);
  if (!shape || countOf(*shape) != rows.size() ||
      (axis >= 0 && (axis >= int64_t(shape->size()) || (*shape)[axis] != rows.rows())))
    return errorAt(function, "is given an operand of " + llvm::Twine(rows.rows()) + " rows of " +
                                 llvm::Twine(rows.cols()) + " numbers, which does not fit");
  Array array(kindOf(cast<graph::SymbolicType>(value.getType()).getElementType()), *shape);
  if (array.isComplex())
    return errorAt(function, "is given an operand of complex numbers");
  int64_t at = axis < 0 ? 0 : axis, count = axis < 0 ? 1 : rows.rows();
  int64_t outer = countOf(ArrayRef(*shape).take_front(at));
  exchange(count, outer, count && outer ? rows.size() / count / outer : 0,
           [&](int64_t from, int64_t to) { array.data()[to] = rows.data()[from]; });
  return array;
}

llvm::Error FunctionRun::set(Value value, Array array) {
  std::optional<Shape> shape = shapeOf(value);
  if (!shape || countOf(*shape) != array.count())
    return makeError("its result has " + llvm::Twine(array.count()) +
                     " entries; the program says another number");
  array = array.as(kindOf(cast<graph::SymbolicType>(value.getType()).getElementType()));
  values[value] = ArrayRef(*shape) == array.shape() ? array : array.viewed(*shape);
  return llvm::Error::success();
}

llvm::Error FunctionRun::call(graph::CallOp op) {
  // ctxc's own are those of python/ctxc/_recurrences.py.
  const bool isKnown = op.getTarget().starts_with("aten.") || op.getTarget().starts_with("ctxc.");
  Meaning meaning = isKnown ? meaningOf(op.getBaseName()) : nullptr;
  if (!meaning)
    return errorAt(op, "of '" + op.getTarget() +
                           "' cannot be run: it has no meaning here (lib/Reference/Graph)");
  SmallVector<Array> operands;
  for (Value operand : op.getOperands())
    operands.push_back(values.lookup(operand));
  Call given(op, operands, tokens);
  Results results = meaning(given);
  if (!given.failure().empty())
    return errorAt(op, "of '" + op.getTarget() + "' " + given.failure());
  if (!given.openness().empty() && !open) {
    open = op;
    why = given.openness();
  }
  if (results.size() != op.getNumResults())
    return errorAt(op, "of '" + op.getTarget() + "' gives " + llvm::Twine(results.size()) +
                           " results; expected " + llvm::Twine(op.getNumResults()));
  for (auto [value, result] : llvm::zip(op.getResults(), results))
    if (llvm::Error error = set(value, result))
      return errorAt(op, "of '" + op.getTarget() + "': " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

/// The number of tokens that torch.export has fixed; 0 where the function takes any.
static int64_t fixedTokens(graph::FunctionOp function) {
  auto number = dyn_cast<IntegerAttr>(function.getTokens());
  return number ? number.getInt() : 0;
}

static llvm::Error wrongCount(graph::FunctionOp function, int64_t count, const llvm::Twine &why) {
  return errorAt(function, "is for " + llvm::Twine(fixedTokens(function)) +
                               " tokens alone, as torch.export has fixed them" + why + "; found " +
                               llvm::Twine(count));
}

llvm::Expected<Matrix> FunctionRun::run(ArrayRef<Matrix> operands) {
  if (fixedTokens(function) && fixedTokens(function) != tokens.count)
    return wrongCount(function, tokens.count, "");
  Block &body = function.getBody().front();
  for (auto [argument, rows, axis] :
       llvm::zip_equal(body.getArguments(), operands, function.getAxes())) {
    llvm::Expected<Array> array = fromRows(rows, argument, axis);
    if (!array)
      return array.takeError();
    values[argument] = *array;
  }
  for (Operation &op : body.without_terminator()) {
    if (auto input = dyn_cast<graph::InputOp>(op)) {
      Array positions(Kind::Integer, {1, tokens.count});
      llvm::copy(tokens.positions, positions.data());
      if (llvm::Error error = set(input, positions))
        return std::move(error);
    } else if (auto stored = dyn_cast<graph::StoredOp>(op)) {
      auto numbers = cast<DenseElementsAttr>(*stored.getValue());
      Array array(Kind::Float, cast<ShapedType>(numbers.getType()).getShape());
      llvm::copy(numbers.getValues<double>(), array.data());
      if (llvm::Error error = set(stored, array))
        return std::move(error);
    } else if (llvm::Error error = call(cast<graph::CallOp>(op))) {
      return std::move(error);
    }
  }
  Value result = body.getTerminator()->getOperand(0);
  Array array = values.lookup(result).contiguous();
  int64_t axis = function.getResultAxis(), rows = axis < 0 ? 1 : tokens.count;
  Matrix made(rows, rows ? array.count() / rows : 0);
  int64_t outer = countOf(array.shape().take_front(std::max<int64_t>(axis, 0)));
  exchange(rows, outer, outer ? made.cols() / outer : 0,
           [&](int64_t to, int64_t from) { made.data()[to] = array.data()[from]; });
  return made;
}

llvm::Expected<Matrix> ctxc::reference::runFunction(graph::FunctionOp function,
                                                    ArrayRef<int64_t> positions,
                                                    ArrayRef<Matrix> operands) {
  return FunctionRun(function, positions).run(operands);
}

/// The same, with an error where PyTorch may give another result as well.
static llvm::Expected<Matrix> runSettled(graph::FunctionOp function, ArrayRef<int64_t> positions,
                                         ArrayRef<Matrix> operands) {
  FunctionRun run(function, positions);
  auto made = run.run(operands);
  if (made)
    if (llvm::Error error = run.checkSettled())
      return std::move(error);
  return made;
}

/// Runs a function of more tokens than there are, by others that follow: once more by different
/// ones, since what these are must make no difference.
static llvm::Expected<Matrix> runAmongMore(graph::FunctionOp function, ArrayRef<int64_t> positions,
                                           ArrayRef<Matrix> operands) {
  int64_t count = positions.size(), all = fixedTokens(function);
  std::vector<int64_t> longer(positions.begin(), positions.end());
  while (int64_t(longer.size()) < all)
    longer.push_back(longer.back() + 1);
  std::array<Matrix, 2> results;
  for (auto [i, result] : llvm::enumerate(results)) {
    SmallVector<Matrix> padded(operands);
    for (auto [rows, axis, argument] :
         llvm::zip_equal(padded, function.getAxes(), function.getBody().front().getArguments())) {
      if (axis < 0)
        continue;
      auto element = cast<graph::SymbolicType>(argument.getType()).getElementType();
      Matrix other = rows.topRows(1);
      if (i > 0)
        other = isa<FloatType>(element) ? Matrix(1 - 0.5 * other.array()) : Matrix(0 * other);
      rows.conservativeResize(all, Eigen::NoChange);
      rows.bottomRows(all - count) = other.replicate(all - count, 1);
    }
    auto made = runSettled(function, longer, padded);
    if (!made)
      return made;
    result = std::move(*made);
  }
  if (int64_t(function.getResultAxis()) >= 0)
    for (Matrix &result : results)
      result.conservativeResize(count, Eigen::NoChange);
  double change = (results[0] - results[1]).cwiseAbs().maxCoeff();
  if (!(change <= 1e-9 * results[0].cwiseAbs().maxCoeff()))
    return wrongCount(function, count, ", since tokens see those behind them");
  return std::move(results[0]);
}

/// Whether the result belongs to tokens; else all of them have the same.
static bool isOfTokens(graph::FunctionOp function) {
  return int64_t(function.getResultAxis()) >= 0;
}

/// The operands' numbers for the state's tokens: of those that belong to tokens, what the state
/// has.
static SmallVector<Matrix> operandsOf(graph::FunctionOp function, Operation *op,
                                      Evaluation &evaluation, reference::OpState &state) {
  SmallVector<Matrix> operands;
  unsigned remembered = 0;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), function.getAxes())) {
    if (axis < 0) {
      operands.push_back(evaluation.widened(operand).topRows(1));
      continue;
    }
    Matrix rows(state.size(), cast<RankedTensorType>(operand.getType()).getNumElements());
    for (int64_t t = 0; t < state.size(); ++t)
      llvm::copy(state.row(remembered, t), rows.row(t).data());
    operands.push_back(std::move(rows));
    ++remembered;
  }
  return operands;
}

llvm::Error ctxc::reference::evaluateFunction(graph::FunctionOp function, Operation *op,
                                              Evaluation &evaluation) {
  reference::OpState ofStep;
  reference::OpState &state = isa<xf::ContextualOpInterface>(op) ? evaluation.state() : ofStep;
  SmallVector<const Matrix *> step;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), function.getAxes()))
    if (axis >= 0)
      step.push_back(&evaluation.rows(operand));
  state.append(evaluation.getEnvironment().positions, step);
  auto run = fixedTokens(function) > state.size() ? runAmongMore : runSettled;
  auto made = run(function, state.getPositions(), operandsOf(function, op, evaluation, state));
  if (!made)
    return made.takeError();
  int64_t count = evaluation.tokenCount();
  Matrix result =
      isOfTokens(function) ? Matrix(made->bottomRows(count)) : Matrix(made->replicate(count, 1));
  evaluation.set(op->getResult(0), std::move(result));
  return llvm::Error::success();
}

llvm::Expected<bool> ctxc::reference::seesBehind(graph::FunctionOp function, Operation *op,
                                                 Evaluation &evaluation) {
  if (!isOfTokens(function))
    return false;
  constexpr int64_t count = 6;
  std::vector<int64_t> positions(count);
  for (int64_t i = 0; i < count; ++i)
    positions[i] = i;
  std::mt19937 generator(1);
  auto entry = [&](Value value) {
    bool isFloat = isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
    return isFloat ? std::normal_distribution<double>()(generator) : double(3 + generator() % 5);
  };
  SmallVector<Matrix> operands;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), function.getAxes())) {
    if (axis < 0) {
      operands.push_back(evaluation.widened(operand).topRows(1));
      continue;
    }
    Matrix rows(count, cast<RankedTensorType>(operand.getType()).getNumElements());
    for (int64_t i = 0; i < rows.size(); ++i)
      rows.data()[i] = entry(operand);
    operands.push_back(std::move(rows));
  }
  auto before = FunctionRun(function, positions).run(operands);
  if (!before)
    return before.takeError();
  for (auto [rows, operand, axis] : llvm::zip(operands, op->getOperands(), function.getAxes()))
    for (int64_t i = 0; axis >= 0 && i < rows.cols(); ++i)
      rows(count - 1, i) = entry(operand);
  auto after = FunctionRun(function, positions).run(operands);
  if (!after)
    return after.takeError();
  double change = (before->topRows(count - 1) - after->topRows(count - 1)).cwiseAbs().maxCoeff();
  return change > 1e-9 * before->cwiseAbs().maxCoeff();
}
