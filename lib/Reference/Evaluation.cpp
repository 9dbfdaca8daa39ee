// The interpreter: a block's ops one after the other, each through its
// ReferenceOpInterface.
#include "ctxc/Reference/Evaluation.h"
#include "CountedMatrix.h"
#include "Graph/Functions.h"
#include "ctxc/Support/Error.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

#include "ctxc/Reference/ReferenceInterface.cpp.inc"

//===----------------------------------------------------------------------===//
// StoredTensor
//===----------------------------------------------------------------------===//

int64_t StoredTensor::elements() const {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

StoredTensor StoredTensor::counted(uint64_t counter, ArrayRef<int64_t> shape) {
  StoredTensor result;
  result.shape.assign(shape.begin(), shape.end());
  result.counter = counter;
  return result;
}

/// The matrix of a counted parameter of at most two dimensions.
static CountedMatrix matrixOf(const StoredTensor &tensor) {
  bool isMatrix = tensor.shape.size() > 1;
  return {*tensor.counter, isMatrix ? tensor.shape.front() : 1, tensor.shape.back()};
}

double StoredTensor::squaredNorm() const {
  int64_t columns = shape.back(), rows = elements() / columns;
  if (counter || !counters.empty())
    return double(rows);
  std::vector<double> numbers(columns);
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    read(row * columns, numbers);
    for (double x : numbers)
      sum += x * x;
  }
  return sum;
}

StoredTensor StoredTensor::slice(int64_t index) const {
  if (counter || !counters.empty())
    return counted(counter ? counterOf(*counter, index) : counters[index],
                   ArrayRef(shape).drop_front());
  StoredTensor result;
  result.dtype = dtype;
  result.shape.assign(shape.begin() + 1, shape.end());
  result.data = slices.empty() ? sliceOf(dtype, data, index, result.elements()) : slices[index];
  return result;
}

void StoredTensor::read(int64_t first, llvm::MutableArrayRef<double> to) const {
  if (counter && shape.size() <= 2) {
    CountedMatrix matrix = matrixOf(*this);
    for (int64_t columns = shape.back(); !to.empty();) {
      int64_t from = first % columns, n = std::min<int64_t>(columns - from, to.size());
      matrix.read(first / columns, from, to.take_front(n));
      first += n;
      to = to.drop_front(n);
    }
    return;
  }
  if (counter || !counters.empty() || !slices.empty()) {
    for (int64_t each = elements() / shape.front(); !to.empty();) {
      int64_t from = first % each, n = std::min<int64_t>(each - from, to.size());
      slice(first / each).read(from, to.take_front(n));
      first += n;
      to = to.drop_front(n);
    }
    return;
  }
  readDoubles(dtype, data, first, to);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

const Matrix &Evaluation::rows(Value value) const {
  if (auto it = computed.find(value); it != computed.end())
    return *it->second;
  std::unique_ptr<Matrix> &rows = repeated[value];
  if (!rows)
    rows = std::make_unique<Matrix>(widened(value).replicate(tokenCount(), 1));
  return *rows;
}

void Evaluation::set(Value value, Matrix rows) {
  computed[value] = std::make_unique<Matrix>(std::move(rows));
}
void Evaluation::set(Value value, StoredTensor parameter) {
  parameters[value] = std::move(parameter);
}

bool Evaluation::isShared(Value parameter) const { return parameters.contains(parameter); }

StoredTensor Evaluation::stored(Value parameter, int64_t token) const {
  if (isShared(parameter))
    return parameters.lookup(parameter);
  StoredTensor own;
  own.data = rows(parameter).row(token).data();
  llvm::append_range(own.shape, cast<RankedTensorType>(parameter.getType()).getShape());
  return own;
}

Matrix Evaluation::widened(Value parameter) const {
  if (!isShared(parameter))
    return rows(parameter);
  StoredTensor from = stored(parameter, 0);
  Matrix result(1, from.elements());
  from.read(0, {result.data(), static_cast<size_t>(result.size())});
  return result;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Resolution reference::resolutionOf(xf::BlockOp block,
                                   llvm::function_ref<const xf::Facts &(Value)> facts,
                                   const Evaluation &evaluation) {
  constexpr double least = 1e-20, most = 1e20;
  Resolution result;
  for (Operation &op : block.getBody().front().without_terminator())
    for (Value value : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || type.getElementType().isInteger() || op.getNumOperands() == 0)
        continue;
      bool mayBeZero = std::max(facts(value).elements, facts(value).vector) == xf::Zeros::OpenSet;
      const Matrix &rows = evaluation.rows(value);
      for (double x : ArrayRef(rows.data(), rows.size())) {
        result.large &= std::abs(x) <= most;
        result.small &= std::abs(x) >= least || (x == 0 && mayBeZero);
      }
    }
  return result;
}

llvm::Error reference::errorAt(Operation *op, const llvm::Twine &message) {
  std::string where;
  llvm::raw_string_ostream os(where);
  if (auto file = op->getLoc()->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
  os << "'" << op->getName() << "' op ";
  return makeError(where + message);
}

/// Checks the caller's values for the block's arguments.
static llvm::Error checkInputs(xf::BlockOp block, ArrayRef<Matrix> inputs,
                               const Environment &environment) {
  if (environment.tokens.empty())
    return errorAt(block, "is given no token");
  ArrayRef<Type> types = block.getArgumentTypes();
  if (inputs.size() != types.size() || environment.tokens.size() != environment.positions.size())
    return errorAt(block, "is given " + llvm::Twine(inputs.size()) + " inputs for " +
                              llvm::Twine(types.size()) + " arguments, and " +
                              llvm::Twine(environment.tokens.size()) + " tokens at " +
                              llvm::Twine(environment.positions.size()) + " positions");
  for (auto [type, input] : llvm::zip(types, inputs)) {
    int64_t elements = cast<RankedTensorType>(type).getNumElements();
    if (input.rows() != int64_t(environment.tokens.size()) || input.cols() != elements)
      return errorAt(block, "is given an input of " + llvm::Twine(input.rows()) + "×" +
                                llvm::Twine(input.cols()) + " numbers, expected " +
                                llvm::Twine(environment.tokens.size()) + "×" +
                                llvm::Twine(elements));
  }
  return llvm::Error::success();
}

/// Finds the state of a contextual op: its place is by its order among the ops of its run.
static llvm::Error selectState(xf::ContextualOpInterface op,
                               std::map<std::optional<xf::Run>, unsigned> &counts,
                               Evaluation &evaluation) {
  std::optional<xf::Run> run = op.getStateRun();
  const auto &states = evaluation.getEnvironment().states;
  auto state = states.find(run);
  if (state == states.end())
    return errorAt(op, "reads the state of " +
                           (run ? "the " + xf::stringifyRun(*run) : llvm::Twine("the only")) +
                           " run, which is not given");
  evaluation.setState(&state->second->op(counts[run]++));
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<Matrix>>
reference::evaluateBlock(xf::BlockOp block, ArrayRef<Matrix> inputs, Evaluation &evaluation) {
  if (llvm::Error error = checkInputs(block, inputs, evaluation.getEnvironment()))
    return error;
  for (auto [argument, input] : llvm::zip(block.getBody().getArguments(), inputs))
    evaluation.set(argument, input);

  Block &body = block.getBody().front();
  std::map<std::optional<xf::Run>, unsigned> contextualOps;
  auto mayGoOn = evaluation.getEnvironment().mayGoOn;
  for (Operation &op : body.without_terminator()) {
    if (mayGoOn)
      if (llvm::Error error = mayGoOn())
        return error;
    auto meaning = dyn_cast<ReferenceOpInterface>(op);
    graph::FunctionOp function = meaning ? graph::FunctionOp() : graph::FunctionOp::ofOp(&op);
    if (!meaning && !function)
      return errorAt(&op, "has no meaning in the reference");
    if (auto contextual = dyn_cast<xf::ContextualOpInterface>(op))
      if (llvm::Error error = selectState(contextual, contextualOps, evaluation))
        return error;
    if (llvm::Error error =
            function ? evaluateFunction(function, &op, evaluation) : meaning.evaluate(evaluation))
      return error;
  }

  llvm::SmallVector<Matrix> outputs;
  for (Value value : body.getTerminator()->getOperands())
    outputs.push_back(evaluation.rows(value));
  return outputs;
}
