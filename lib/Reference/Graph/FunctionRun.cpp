#include "FunctionRun.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

int64_t ctxc::reference::fixedTokens(graph::FunctionOp function) {
  auto number = dyn_cast<IntegerAttr>(function.getTokens());
  return number ? number.getInt() : 0;
}

llvm::Error ctxc::reference::wrongCount(graph::FunctionOp function, int64_t count,
                                        const llvm::Twine &why) {
  return errorAt(function, "is for " + llvm::Twine(fixedTokens(function)) +
                               " tokens alone, as torch.export has fixed them" + why + "; found " +
                               llvm::Twine(count));
}

FunctionRun::FunctionRun(graph::FunctionOp function, ArrayRef<int64_t> given)
    : function(function), positions(given) {
  if (auto symbol = dyn_cast<StringAttr>(function.getTokens()))
    tokens.symbol = symbol.getValue();
  tokens.count = positions.size();
  tokens.positions = positions;
  tokens.counted = function.getCounted();
}

llvm::Error FunctionRun::checkSettled() const {
  return open ? errorAt(open, "of '" + graph::CallOp(open).getTarget() + "' " + why)
              : llvm::Error::success();
}

std::optional<Shape> FunctionRun::shapeOf(Value value) const {
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

llvm::Error FunctionRun::set(Value value, Array array, Arrays &to) {
  std::optional<Shape> shape = shapeOf(value);
  if (!shape || countOf(*shape) != array.count())
    return makeError("its result has " + llvm::Twine(array.count()) +
                     " entries; the program says another number");
  array = array.as(kindOf(cast<graph::SymbolicType>(value.getType()).getElementType()));
  to[value] = ArrayRef(*shape) == array.shape() ? array : array.viewed(*shape);
  return llvm::Error::success();
}

llvm::Error FunctionRun::call(graph::CallOp op, Arrays &in) {
  // ctxc's own are those of python/ctxc/_recurrences.py.
  const bool isKnown = op.getTarget().starts_with("aten.") || op.getTarget().starts_with("ctxc.");
  Meaning meaning = isKnown ? meaningOf(op.getBaseName()) : nullptr;
  if (!meaning)
    return errorAt(op, "of '" + op.getTarget() +
                           "' cannot be run: it has no meaning here (lib/Reference/Graph)");
  SmallVector<Array> operands;
  for (Value operand : op.getOperands())
    operands.push_back(operandOf(op, operand, in));
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
    if (llvm::Error error = set(value, result, in))
      return errorAt(op, "of '" + op.getTarget() + "': " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Error FunctionRun::step(Operation &op, Arrays &to) {
  if (auto input = dyn_cast<graph::InputOp>(op)) {
    Array array(Kind::Integer, {1, tokens.count});
    llvm::copy(tokens.positions, array.data());
    return set(input, array, to);
  }
  if (auto stored = dyn_cast<graph::StoredOp>(op)) {
    auto numbers = cast<DenseElementsAttr>(*stored.getValue());
    Array array(Kind::Float, cast<ShapedType>(numbers.getType()).getShape());
    llvm::copy(numbers.getValues<double>(), array.data());
    return set(stored, array, to);
  }
  return call(cast<graph::CallOp>(op), to);
}

//===----------------------------------------------------------------------===//
// Values of positions
//===----------------------------------------------------------------------===//

void FunctionRun::findFixed() {
  llvm::DenseSet<Value> ofTokens;
  Block &body = function.getBody().front();
  for (auto [argument, axis] : llvm::zip_equal(body.getArguments(), function.getAxes()))
    if (axis >= 0)
      ofTokens.insert(argument);
  for (Operation &op : body.without_terminator()) {
    if (llvm::none_of(op.getOperands(), [&](Value v) { return ofTokens.contains(v); }))
      fixed.insert(&op);
    else
      ofTokens.insert(op.result_begin(), op.result_end());
  }
}

/// Computes them for all positions up to the last one of the run, or of the program.
llvm::Error FunctionRun::computeFixed() {
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(
      0, fixedTokens(function) ? fixedTokens(function) : *llvm::max_element(positions) + 1));
  Tokens ofRun = tokens;
  tokens.count = all.size();
  tokens.positions = all;
  for (auto [argument, axis] :
       llvm::zip_equal(function.getBody().front().getArguments(), function.getAxes()))
    if (axis < 0)
      ofPositions[argument] = values[argument];
  llvm::Error error = llvm::Error::success();
  for (Operation &op : function.getBody().front().without_terminator())
    if (!error && fixed.contains(&op))
      error = step(op, ofPositions);
  tokens = ofRun;
  return error;
}

/// The entries of a value of positions that belong to the run's tokens; none where an axis is made
/// of the tokens' number in another way.
std::optional<Array> FunctionRun::atPositions(Value value) {
  auto type = cast<graph::SymbolicType>(value.getType());
  SmallVector<int64_t> along;
  for (auto [axis, size] : llvm::enumerate(type.getSizes())) {
    if (size == function.getTokens())
      along.push_back(axis);
    else if (!isa<IntegerAttr>(size))
      return std::nullopt;
  }
  // Where the number of tokens is fixed, others follow in the place of those that lack. They have
  // no positions of their own, and a mask has to hide them.
  if (fixedTokens(function) && along.size() > 1)
    return std::nullopt;
  Array array = ofPositions.lookup(value);
  for (int64_t axis : along) {
    Array from = array.contiguous();
    Shape shape(array.shape());
    shape[axis] = positions.size();
    Array entries(array.kind(), shape);
    int64_t inner = countOf(ArrayRef(shape).drop_front(axis + 1)) * (array.isComplex() ? 2 : 1),
            outer = countOf(ArrayRef(shape).take_front(axis)), length = array.size(axis);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t t = 0; t < shape[axis]; ++t)
        std::copy_n(from.data() + (o * length + std::min(positions[t], length - 1)) * inner, inner,
                    entries.data() + (o * shape[axis] + t) * inner);
    array = entries;
  }
  return array;
}

/// Whether `op` takes entries by their places along the axis of the run's tokens.
bool FunctionRun::countsTokens(Operation *op) {
  auto call = dyn_cast<graph::CallOp>(op);
  Value self = call ? call.getTensor("self") : Value();
  if (!self)
    return false;
  ArrayRef<Attribute> sizes = cast<graph::SymbolicType>(self.getType()).getSizes();
  if (auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"))) {
    for (auto [axis, index] : llvm::enumerate(list))
      if (isa<graph::OperandAttr>(index) && axis < sizes.size() &&
          sizes[axis] == function.getTokens())
        return true;
    return false;
  }
  auto dim = dyn_cast_or_null<IntegerAttr>(call.getArgument("dim"));
  int64_t axis = dim ? dim.getInt() + (dim.getInt() < 0 ? int64_t(sizes.size()) : 0) : 0;
  return call.getTensor("index") && axis >= 0 && axis < int64_t(sizes.size()) &&
         sizes[axis] == function.getTokens();
}

/// What `op` reads: a value of positions where it meets one of tokens, or is the result, by them.
Array FunctionRun::operandOf(Operation *op, Value value, Arrays &in) {
  bool isOfPositions = fixed.contains(value.getDefiningOp()) && !fixed.contains(op);
  if (!isOfPositions || countsTokens(op))
    return in.lookup(value);
  auto known = taken.find(value);
  if (known == taken.end()) {
    std::optional<Array> entries = atPositions(value);
    known = taken.try_emplace(value, entries ? *entries : in.lookup(value)).first;
  }
  return known->second;
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
  bool isAll = llvm::equal(positions, llvm::seq<int64_t>(0, positions.size()));
  if (!isAll && !positions.empty()) {
    findFixed();
    if (llvm::Error error = computeFixed())
      return std::move(error);
    tokens.counted &= fixedTokens(function) > 0; // what is left counts the run's own tokens
  }
  for (Operation &op : body.without_terminator())
    if (llvm::Error error = step(op, values))
      return std::move(error);
  Value result = body.getTerminator()->getOperand(0);
  Array array = operandOf(body.getTerminator(), result, values).contiguous();
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
