// The parts of a scope, and what each of its calls becomes where no pattern is concerned.
#include "Raise.h"
#include "GraphValues.h"
#include "SureMixing.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// No op of xf computes with complex numbers: what is made of them belongs to what made them.
static bool readsComplex(graph::CallOp call) {
  return llvm::any_of(call.getOperands(), [](Value operand) {
    auto type = dyn_cast<graph::SymbolicType>(operand.getType());
    return type && isa<ComplexType>(type.getElementType());
  });
}

Parts ctxc::pt2::divide(ArrayRef<graph::CallOp> calls, ArrayRef<Value> results,
                        const TokenAxes &axes) {
  llvm::DenseSet<Operation *> scope;
  for (graph::CallOp call : calls)
    scope.insert(call);
  Parts parts;
  SmallVector<Value> work(results);
  llvm::DenseSet<Value> seen;
  // The tail, from the results backwards; then what the mixing calls read of it.
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!axes.isData(value) || !seen.insert(value).second)
      continue;
    auto call = value.getDefiningOp<graph::CallOp>();
    if (!scope.contains(value.getDefiningOp())) {
      parts.inputs.insert(value);
    } else if (axes.mixing(call) == Mixing::None && !readsComplex(call)) {
      parts.tail.insert(call);
      llvm::append_range(work, call.getOperands());
    } else {
      parts.mixed.insert(value);
    }
  }
  llvm::append_range(work, parts.mixed);
  llvm::DenseSet<Value> read;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!axes.isData(value) || !read.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!scope.contains(op))
      parts.inputs.insert(value);
    else if (!parts.tail.contains(op))
      llvm::append_range(work, op->getOperands());
  }
  return parts;
}

llvm::Expected<RankedTensorType> ctxc::pt2::tokenType(Value value, const TokenAxes &axes) {
  auto type = cast<graph::SymbolicType>(value.getType());
  Type element = type.getElementType();
  MLIRContext *context = type.getContext();
  if (isa<ComplexType>(element))
    return makeError("a value of one token has complex numbers, which no op of xf computes with");
  if (isa<FloatType>(element))
    element = Float32Type::get(context);
  else if (!element.isInteger(1))
    element = IntegerType::get(context, 32);
  std::optional<unsigned> axis = axes.axis(type);
  SmallVector<int64_t> shape;
  for (unsigned i = 0; i < type.getRank(); ++i) {
    if (axis == i)
      continue;
    std::optional<int64_t> size = type.getNumber(i);
    if (!size || *size == 0)
      return makeError("a value of one token has the size " +
                       Twine(size ? "0" : cast<StringAttr>(type.getSizes()[i]).getValue()) +
                       " along axis " + Twine(i) + "; expected a fixed one that is not 0");
    shape.push_back(*size);
  }
  while (shape.size() > 1 && shape.front() == 1)
    shape.erase(shape.begin());
  if (shape.empty())
    shape.push_back(1);
  auto result = RankedTensorType::get(shape, element);
  if (!xf::isSized(result))
    return makeError("a value of one token has more entries than any model's");
  return result;
}

std::optional<int64_t> Raiser::tokenDim(Value value, int64_t dim) const {
  auto type = cast<graph::SymbolicType>(value.getType());
  std::optional<unsigned> axis = axes.axis(type);
  dim += dim < 0 ? type.getRank() : 0;
  if (dim < 0 || dim >= type.getRank() || (axis && dim == *axis))
    return std::nullopt;
  int64_t before = dim - (axis && *axis < dim);
  int64_t rank = type.getRank() - axis.has_value();
  auto raised = tokenType(value, axes);
  if (!raised) {
    llvm::consumeError(raised.takeError());
    return std::nullopt;
  }
  int64_t result = before - (rank - raised->getRank()); // leading axes of one entry are not there
  return result >= 0 ? std::optional(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// `value` before ops that repeat it as a whole, as for each token.
static Value beforeRepeats(Value value) {
  while (true) {
    value = beforeCopies(value);
    graph::CallOp call = callOf(value, "expand");
    Value from = call ? call.getOperand(0) : Value();
    auto sizesOf = [](Value of) { return cast<graph::SymbolicType>(of.getType()).getSizes(); };
    if (!from || sizesOf(from).size() > sizesOf(value).size() ||
        sizesOf(value).take_back(sizesOf(from).size()) != sizesOf(from))
      return value;
    value = from;
  }
}

graph::StoredOp Raiser::storedOf(Value value) const {
  return value ? parameterOf(beforeRepeats(value)) : graph::StoredOp();
}

Value Raiser::parameter(graph::StoredOp stored, bool isMatrix) {
  Value &known = parameters[stored];
  if (known)
    return known;
  auto type = cast<graph::SymbolicType>(stored.getType());
  SmallVector<int64_t> shape;
  for (unsigned i = 0; i < type.getRank(); ++i)
    shape.push_back(*type.getNumber(i));
  if (shape.empty())
    shape = {1}; // isSameShape, here and below
  while (isMatrix && shape.size() > 2 && shape.front() == 1)
    shape.erase(shape.begin());
  std::string name = naming(stored.getName());
  known = xf::ParamOp::create(builder, NameLoc::get(builder.getStringAttr(name)),
                              RankedTensorType::get(shape, type.getElementType()), name,
                              /*frozen=*/stored.getFixed(), /*constant=*/stored.getFixed());
  return known;
}

/// The parameters that `value` is made of. No patch changes what is not trained.
static llvm::SetVector<graph::StoredOp> sourcesOf(Value value) {
  llvm::SetVector<graph::StoredOp> stored;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> work{value.getDefiningOp()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    if (auto one = dyn_cast<graph::StoredOp>(op); one && !one.getFixed())
      stored.insert(one);
    if (auto call = dyn_cast<graph::CallOp>(op); call && TokenAxes::ignoresNumbers(call))
      continue;
    for (Value operand : op->getOperands())
      work.push_back(operand.getDefiningOp());
  }
  return stored;
}

llvm::Expected<Value> Raiser::fixedValue(Value value) {
  if (graph::StoredOp stored = storedOf(value))
    return parameter(stored);
  if (Value row = fixedRow(value))
    return row;
  auto call = value.getDefiningOp<graph::CallOp>();
  bool isOfPositions = sourcesOf(value).empty();
  if (llvm::Error error = raiseUnknown(value, {}, call ? call.getTarget() : StringRef("input"),
                                       isOfPositions ? "it depends on positions and constants alone"
                                                     : "it is made of stored tensors alone"))
    return std::move(error);
  return lookup(value);
}

llvm::Expected<Value> Raiser::operand(Value value) {
  Value &known = values[value];
  if (known)
    return known;
  if (isData(value))
    return makeError("a value is read before anything makes it");
  llvm::Expected<Value> made = fixedValue(value);
  if (made)
    values[value] = *made;
  return made;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void Raiser::Standing::name(Operation *op) const {
  if (function)
    op->setAttr(graph::FunctionOp::bodyName, function);
}

llvm::Expected<Raiser::Standing> Raiser::standing(Value value, ArrayRef<Value> arguments,
                                                  StringRef path) {
  Standing result;
  std::optional<Capture::Function> function = capture.capture(value, arguments, path);
  if (function)
    result.function = function->name;
  for (Value argument : function ? ArrayRef<Value>(function->arguments) : arguments) {
    llvm::Expected<Value> raised = operand(argument);
    if (!raised)
      return raised.takeError();
    result.operands.push_back(*raised);
  }
  return result;
}

llvm::Error Raiser::raiseUnknown(Value value, ArrayRef<Value> data, StringRef target,
                                 StringRef why) {
  auto type = tokenType(value, axes);
  if (!type)
    return type.takeError();
  SmallVector<Value> arguments(data);
  // Of what does not depend on what the model reads, the parameters in it count.
  Operation *op = value.getDefiningOp();
  for (Value operand : data.empty() ? ValueRange(value) : ValueRange(op->getOperands())) {
    if (isData(operand))
      continue;
    for (graph::StoredOp source : sourcesOf(operand)) {
      if (!parameterOf(source))
        return makeError("parameter '" + source.getName() +
                         "' is of a type that no patch changes; expected f32, bf16 or f16");
      if (!llvm::is_contained(arguments, Value(source)))
        arguments.push_back(source);
    }
  }
  auto call = dyn_cast<graph::CallOp>(op);
  auto standing = this->standing(value, arguments, call ? call.getPath() : StringRef());
  if (!standing)
    return standing.takeError();
  auto opaque =
      graph::OpaqueOp::create(builder, value.getLoc(), *type, target, why, standing->operands);
  standing->name(opaque);
  bind(value, opaque);
  return llvm::Error::success();
}

llvm::Error Raiser::raiseOpaque(graph::CallOp call, StringRef why) {
  llvm::SetVector<Value> data;
  for (Value operand : call.getOperands())
    if (isData(operand))
      data.insert(operand);
  for (Value result : call.getResults())
    if (llvm::Error error = raiseUnknown(result, data.getArrayRef(), call.getTarget(), why))
      return error;
  return llvm::Error::success();
}

llvm::Expected<bool> Raiser::raiseByPattern(graph::CallOp call) {
  Results results = raiseKnown(call);
  for (auto [result, raised] : llvm::zip(call.getResults(), results)) {
    auto type = tokenType(result, axes);
    if (!type)
      return type.takeError();
    // A pattern whose result has another type does not match.
    if (raised.getType() != *type)
      results.clear();
  }
  if (results.empty())
    return false;
  for (auto [result, raised] : llvm::zip(call.getResults(), results))
    bind(result, raised);
  return true;
}

/// Why no pattern raises a call.
std::string Raiser::whyUnknown(graph::CallOp call) const {
  for (Value operand : call.getOperands()) {
    graph::CallOp made = isData(operand) ? graph::CallOp() : computedBy(operand);
    if (!made)
      continue;
    for (graph::StoredOp source : sourcesOf(operand))
      return "it reads what " + quoted(made.getTarget()) + " makes of " +
             quoted(naming(source.getName())) +
             ", and nothing says which numbers a change of that can make";
  }
  return "no pattern raises it to xf; write one (docs/check-your-architecture.md)";
}

llvm::Error Raiser::raise(graph::CallOp call) {
  llvm::Expected<bool> raised = raiseByPattern(call);
  if (!raised)
    return raised.takeError();
  return *raised ? llvm::Error::success() : raiseOpaque(call, whyUnknown(call));
}

MixedRegion ctxc::pt2::regionOf(Value mixed, const Parts &parts,
                                const llvm::DenseSet<Operation *> &scope, const TokenAxes &axes) {
  MixedRegion region;
  SmallVector<Value> work{mixed};
  llvm::DenseSet<Value> seen;
  llvm::DenseSet<Operation *> own;
  while (!work.empty()) {
    Value read = work.pop_back_val();
    if (!seen.insert(read).second)
      continue;
    Operation *op = read.getDefiningOp();
    if (!axes.isData(read)) {
      for (graph::StoredOp source : sourcesOf(read))
        region.stored.insert(source);
    } else if (!scope.contains(op) || parts.tail.contains(op)) {
      region.data.insert(read);
    } else if (own.insert(op).second) {
      region.calls.push_back(cast<graph::CallOp>(op));
      llvm::append_range(work, op->getOperands());
    }
  }
  return region;
}

/// That `value`, which others read, belongs to no single token, and what made it so.
llvm::Error Raiser::severalTokens(Value value) const {
  auto call = value.getDefiningOp<graph::CallOp>();
  while (true) {
    auto from = llvm::find_if(call.getOperands(), [&](Value operand) {
      return axes.isData(operand) && !axes.axis(operand) && operand.getDefiningOp<graph::CallOp>();
    });
    if (from == call.operand_end())
      break;
    call = (*from).getDefiningOp<graph::CallOp>();
  }
  std::string where = "'" + call.getTarget().str() + "'";
  if (!call.getPath().empty())
    where += " in " + call.getPath().str();
  if (auto line = call->getLoc()->findInstanceOf<FileLineColLoc>())
    where += " (" + line.getFilename().str() + ":" + std::to_string(line.getLine()) + ")";
  bool takesSome = llvm::is_contained({"select", "slice", "index", "narrow", "index_select"},
                                      call.getBaseName());
  return makeError(where +
                   (takesSome ? " takes some of the tokens, and what is made of these alone"
                              : " makes a value of several tokens, which") +
                   " is read outside of its layer; expected one axis of all tokens" +
                   (takesSome ? ": where the head is computed for the last token alone, as in "
                                "head(x[:, -1]), export it for every token, as in head(x)"
                              : ""));
}

llvm::Error Raiser::raiseMixed(Value value, const Parts &parts,
                               const llvm::DenseSet<Operation *> &calls) {
  auto call = value.getDefiningOp<graph::CallOp>();
  if (!axes.axis(value))
    return severalTokens(value);
  std::string obstacle;
  if (isa<xf::BlockOp>(builder.getInsertionBlock()->getParentOp())) {
    if (raiseRecurrent(value))
      return llvm::Error::success();
    llvm::Expected<bool> raised = raiseAttention(value, obstacle);
    if (!raised) // what prevents an attention does not prevent a region
      obstacle = llvm::toString(raised.takeError());
    else if (*raised)
      return llvm::Error::success();
  }
  MixedRegion region = regionOf(value, parts, calls, axes);
  SmallVector<Value> arguments(region.data.begin(), region.data.end());
  // A parameter that the region reads and the tail patches would change what the region makes.
  for (graph::StoredOp source : region.stored)
    arguments.push_back(source);
  auto standing = this->standing(value, arguments, call.getPath());
  if (!standing)
    return standing.takeError();
  auto type = tokenType(value, axes);
  if (!type)
    return type.takeError();
  // In a layer the module's path goes on behind the layer's own.
  std::string name = naming(call.getPath().empty() ? call.getTarget() : call.getPath());
  // A contextual op has floating-point numbers, of which others may be made.
  auto floats = RankedTensorType::get(type->getShape(), builder.getF32Type());
  auto contextual = xf::OpaqueContextualOp::create(builder, call.getLoc(), floats, name,
                                                   standing->operands, xf::RunAttr());
  standing->name(contextual);
  if (!obstacle.empty())
    contextual->setAttr(graph::FunctionOp::whyName, builder.getStringAttr(obstacle));
  Value mixed = contextual;
  if (*type != floats || !surelyMixes(region.calls, axes)) {
    auto opaque = graph::OpaqueOp::create(builder, call.getLoc(), *type, call.getTarget(),
                                          "it is not shown that it reads other tokens", mixed);
    // The same numbers.
    if (standing->function)
      opaque->setAttr(graph::FunctionOp::bodyName, capture.capture(value, value, "same")->name);
    mixed = opaque;
  }
  bind(value, mixed);
  return llvm::Error::success();
}
