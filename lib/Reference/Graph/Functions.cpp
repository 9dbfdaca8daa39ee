#include "Functions.h"
#include "FunctionRun.h"
#include "ctxc/Support/Error.h"
#include <random>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

/// The result of a run; an error where PyTorch may give another one as well.
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

/// Random operands of `op` for tokens at `count` positions.
static SmallVector<Matrix> randomOperands(graph::FunctionOp function, Operation *op,
                                          Evaluation &evaluation, int64_t count) {
  std::mt19937 generator(1);
  SmallVector<Matrix> operands;
  for (auto [operand, axis] : llvm::zip_equal(op->getOperands(), function.getAxes())) {
    if (axis < 0) {
      operands.push_back(evaluation.widened(operand).topRows(1));
      continue;
    }
    auto type = cast<RankedTensorType>(operand.getType());
    Matrix rows(count, type.getNumElements());
    for (int64_t i = 0; i < rows.size(); ++i)
      rows.data()[i] = isa<FloatType>(type.getElementType())
                           ? std::normal_distribution<double>()(generator)
                           : double(3 + generator() % 5);
    operands.push_back(std::move(rows));
  }
  return operands;
}

/// Whether the results of the first tokens differ between two runs.
static bool differ(const Matrix &a, const Matrix &b, int64_t count) {
  double change = (a.topRows(count) - b.topRows(count)).cwiseAbs().maxCoeff();
  return change > 1e-9 * a.topRows(count).cwiseAbs().maxCoeff();
}

llvm::Expected<Following> ctxc::reference::readsFollowing(graph::FunctionOp function, Operation *op,
                                                          Evaluation &evaluation) {
  constexpr int64_t count = 6;
  const bool isFixed = fixedTokens(function) > 0, joins = isa<xf::ContextualOpInterface>(op);
  if (isFixed && !joins)
    return Following::Nothing; // of a number that never changes
  auto run = [&](ArrayRef<Matrix> operands, int64_t length) {
    return FunctionRun(function, llvm::to_vector(llvm::seq<int64_t>(0, length))).run(operands);
  };
  SmallVector<Matrix> longer = randomOperands(function, op, evaluation, count + 1),
                      operands(longer);
  auto keep = [&](SmallVectorImpl<Matrix> &of, int64_t rows) {
    for (auto [each, axis] : llvm::zip_equal(of, function.getAxes()))
      if (axis >= 0)
        each.conservativeResize(rows, Eigen::NoChange);
  };
  keep(operands, count);
  auto before = run(operands, count);
  if (!before)
    return before.takeError();
  if (joins && isOfTokens(function)) {
    for (auto [rows, other, axis] : llvm::zip_equal(operands, longer, function.getAxes()))
      if (axis >= 0)
        rows.row(count - 1) = other.row(count);
    auto after = run(operands, count);
    if (!after)
      return after.takeError();
    if (differ(*before, *after, count - 1))
      return Following::Tokens;
  }
  if (isFixed)
    return Following::Nothing;
  auto among = run(longer, count + 1);
  if (!among)
    return among.takeError();
  return differ(*before, *among, isOfTokens(function) ? count : 1) ? Following::Count
                                                                   : Following::Nothing;
}
