// Numbers that are added or that limit others, and values that are made of stored tensors alone.
#include "Follower.h"
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

Value Raiser::plus(Location loc, Value x, double number) {
  if (number == 0)
    return x;
  Value ones = xf::createOnes(builder, loc, ranked(x).getShape());
  Value term = xf::TimesOp::create(builder, loc, ones, llvm::APFloat(float(number)));
  return xf::AddOp::create(builder, loc, x, term);
}

/// A number in all entries.
Raiser::Results Raiser::filled(graph::CallOp call) {
  Value tensor = call.getTensor("value");
  std::optional<double> number = tensor ? numberIn(tensor, axes) : numberOf(call, "value");
  auto type = tokenType(call.getResult(0), axes);
  bool isNumber = type && isa<FloatType>(type->getElementType()) && number &&
                  std::isfinite(float(*number)) && !(tensor && isData(tensor));
  llvm::consumeError(type.takeError());
  if (!isNumber)
    return {};
  Value ones = xf::createOnes(builder, call.getLoc(), type->getShape());
  return {xf::TimesOp::create(builder, call.getLoc(), ones, llvm::APFloat(float(*number)))};
}

/// x + c, x − c, and c − x.
Raiser::Results Raiser::withTerm(graph::CallOp call, Value x, double number) {
  StringRef name = call.getBaseName();
  if (!std::isfinite(float(number)))
    return {};
  if (name == "rsub")
    x = xf::TimesOp::create(builder, call.getLoc(), x, llvm::APFloat(-1.0f));
  return {plus(call.getLoc(), x, name == "sub" ? -number : number)};
}

/// min(max(x, low), high).
Raiser::Results Raiser::clamped(graph::CallOp call) {
  auto limit = [&](StringRef name) {
    std::optional<double> number = numberOf(call, name);
    return number && std::isinf(*number) && (*number < 0) == (name == "min") ? std::nullopt
                                                                             : number;
  };
  std::optional<double> low = limit("min"), high = limit("max");
  Value x = lookup(call.getOperand(0));
  Location loc = call.getLoc();
  auto isNumber = [](std::optional<double> number) {
    return !number || std::isfinite(float(*number));
  };
  if (call.getNumOperands() != 1 || !isNumber(low) || !isNumber(high) ||
      (low && high && *low > *high))
    return {};
  return {limited(loc, x, low, high)};
}

/// The larger or the smaller entries of two values: b + relu(a − b), and b − relu(b − a).
Raiser::Results Raiser::extreme(graph::CallOp call) {
  if (call.getArgument("dim") && call.getBaseName() == "max")
    return largest(call);
  Value self = call.getTensor("self"), other = call.getTensor("other");
  Value a = self && other ? ofStored(self) : Value(), b = a ? ofStored(other) : Value();
  Location loc = call.getLoc();
  if (!a || !b || !matchShapes(loc, a, b))
    return {};
  bool isMost = call.getBaseName().starts_with("max");
  Value difference = xf::SubOp::create(builder, loc, isMost ? a : b, isMost ? b : a);
  Value more = activation(loc, xf::ActivationKind::relu, difference);
  if (isMost)
    return {xf::AddOp::create(builder, loc, b, more)};
  return {xf::SubOp::create(builder, loc, b, more)};
}

/// 1 where `condition`, a comparison with a number, holds, and 0 elsewhere; null where it is
/// another. A zero divisor counts as one, so that r ⊘ r is 1 where r is not zero.
Value Raiser::flagOf(graph::CallOp condition) {
  StringRef name = condition ? condition.getBaseName() : StringRef();
  std::optional<double> number = condition ? numberOf(condition, "other") : std::nullopt;
  Value from = condition ? condition.getTensor("self") : Value();
  Value x = from && isData(from) ? lookup(from) : Value();
  if (!x || !isa<FloatType>(ranked(x).getElementType()) || !number ||
      !std::isfinite(float(*number)) || !llvm::is_contained({"gt", "lt", "ge", "le"}, name))
    return {};
  Location loc = condition.getLoc();
  // ≥ is not <, and ≤ not >.
  bool isLarger = name == "gt" || name == "le";
  if (!isLarger)
    x = xf::TimesOp::create(builder, loc, x, llvm::APFloat(-1.0f));
  Value more =
      activation(loc, xf::ActivationKind::relu, plus(loc, x, isLarger ? -*number : *number));
  Value flag = xf::DivOp::create(builder, loc, more, more);
  return name == "gt" || name == "lt" ? flag : notOf(loc, flag);
}

/// 1 − x.
Value Raiser::notOf(Location loc, Value flag) {
  return plus(loc, xf::TimesOp::create(builder, loc, flag, llvm::APFloat(-1.0f)), 1);
}

/// One of two values by a comparison with a number.
Raiser::Results Raiser::choice(graph::CallOp call) {
  Value condition = call.getTensor("condition"), x = call.getTensor("self"),
        otherwise = call.getTensor("other");
  auto compared = condition ? condition.getDefiningOp<graph::CallOp>() : graph::CallOp();
  Value a = x && isData(x) ? lookup(x) : Value();
  if (!compared || !compared.getTarget().starts_with("aten.") || !a || !otherwise ||
      !isData(otherwise) || !isa<FloatType>(ranked(a).getElementType()))
    return {};
  Value b = lookup(otherwise), flag = b ? flagOf(compared) : Value();
  if (!flag || a.getType() != b.getType() || flag.getType() != a.getType())
    return {};
  Location loc = call.getLoc();
  Value chosen = xf::MulOp::create(builder, loc, flag, a),
        rest = xf::MulOp::create(builder, loc, notOf(loc, flag), b);
  return {xf::AddOp::create(builder, loc, chosen, rest)};
}

//===----------------------------------------------------------------------===//
// Of stored tensors
//===----------------------------------------------------------------------===//

Value Raiser::numbersOf(graph::StoredOp stored) {
  constexpr int64_t most = 1 << 18;
  auto type = cast<graph::SymbolicType>(stored.getType());
  if (!stored.getFixed() || stored.getLoaded())
    return {};
  SmallVector<int64_t> shape;
  int64_t count = 1;
  for (unsigned i = 0; i < type.getRank(); ++i) {
    shape.push_back(*type.getNumber(i));
    if (shape.back() > most / count)
      return {};
    count *= shape.back();
  }
  std::optional<std::vector<double>> numbers = rotations.numbersOf()(stored);
  SmallVector<float> rounded;
  if (numbers)
    rounded.assign(numbers->begin(), numbers->end());
  auto isFinite = [](float x) { return std::isfinite(x); };
  if (int64_t(rounded.size()) != count || !llvm::all_of(rounded, isFinite))
    return {};
  // What weights have by this name does not count.
  stored->setAttr(graph::StoredOp::inProgram, builder.getUnitAttr());
  auto of = RankedTensorType::get(shape, builder.getF32Type());
  return setting(stored.getLoc(), "constant " + naming(stored.getName()), of,
                 DenseElementsAttr::get(of, ArrayRef(rounded)));
}

Value Raiser::numbersFor(graph::StoredOp stored, Value data) {
  Value numbers = numbersOf(stored);
  if (!numbers)
    return {};
  ArrayRef<int64_t> shape = ranked(numbers).getShape();
  while (int64_t(shape.size()) > ranked(data).getRank() && shape.front() == 1)
    shape = shape.drop_front();
  return reshaped(stored.getLoc(), numbers, RankedTensorType::get(shape, builder.getF32Type()));
}

/// Whether entries of the result are functions of entries of the operands, or are these, or shares
/// or sums of them.
static bool isByEntry(graph::CallOp call) {
  const graph::AtenOp *op = graph::atenOp(call);
  return op && (op->kind == graph::AtenKind::Entries || op->keepsNumbers() ||
                op->name == "softmax" || op->name == "sum");
}

/// The number without an axis that `stored` is, where no patch changes it.
std::optional<double> Raiser::fixedNumber(graph::StoredOp stored) const {
  auto type = cast<graph::SymbolicType>(stored.getType());
  if (!stored.getFixed() || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  std::optional<std::vector<double>> numbers = rotations.numbersOf()(stored);
  bool isOne = numbers && numbers->size() == 1 && std::isfinite(float(numbers->front()));
  return isOne ? std::optional(numbers->front()) : std::nullopt;
}

/// Whether `value` is a row of a stored table for each token.
static bool isRows(Value value, const TokenAxes &axes) {
  graph::CallOp rows = callOf(value, "embedding");
  Value table = rows ? rows.getTensor("weight") : Value();
  return table && axes.countAxes(value) == 1 && parameterOf(table);
}

/// Whether `value` is a stored tensor or rows of one, or the token's position.
bool Raiser::isLeaf(Value value) const {
  auto stored = value.getDefiningOp<graph::StoredOp>();
  return (stored && (parameterOf(value) || fixedNumber(stored))) || isRows(value, axes) ||
         positionOf(value);
}

/// It as a value: a tensor is the scale of ones, so that a patch may change it.
Value Raiser::leafOf(Value value) {
  Location loc = value.getLoc();
  if (std::optional<Place> place = positionOf(value))
    return xf::PositionOp::create(builder, loc, RankedTensorType::get({1}, builder.getF32Type()),
                                  place->plus, place->over);
  if (isRows(value, axes))
    return fixedRow(value);
  auto type = tokenType(value, axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return {};
  }
  auto stored = value.getDefiningOp<graph::StoredOp>();
  Value made = parameterOf(value) ? numbersOf(stored) : Value();
  if (!made && parameterOf(value)) {
    Value scale = parameter(stored), ones = xf::createOnes(builder, loc, ranked(scale).getShape());
    made = xf::ScaleOp::create(builder, loc, ones, scale, llvm::APFloat(0.0f));
  } else if (!made) {
    made = xf::TimesOp::create(builder, loc, xf::createOnes(builder, loc, {1}),
                               llvm::APFloat(float(*fixedNumber(stored))));
  }
  return reshaped(loc, made, *type);
}

/// Whether a token's entries of the result are made of those of the same token in each operand that
/// has any, and some has; or of what is the same for all tokens.
static bool keepsTokens(graph::CallOp call, const TokenAxes &axes) {
  const graph::AtenOp *op = graph::atenOp(call);
  const StringRef name = call.getBaseName();
  const bool divides =
      llvm::is_contained({"split", "split_with_sizes", "chunk", "slice", "cat"}, name);
  bool isKnown = divides || (op && op->kind == graph::AtenKind::Entries) ||
                 llvm::is_contained({"stack", "view", "reshape", "unsqueeze", "squeeze"}, name);
  bool areTokens = false;
  for (Value operand : call.getOperands()) {
    if (!axes.countAxes(operand))
      continue;
    std::optional<unsigned> axis = axes.axis(operand);
    int64_t dim = integerOf(call, "dim").value_or(0);
    dim += dim < 0 ? rankOf(operand) : 0;
    bool isAlong = divides && dim == int64_t(axis.value_or(0)) &&
                   operand.getType() != call.getResult(0).getType();
    if (!axis || isAlong)
      return false;
    areTokens = true;
  }
  return (isKnown && areTokens) || name == "expand";
}

/// Finds the calls that make `value`, and what they begin with; false where others do.
bool Raiser::collectStored(Value value, SmallVectorImpl<graph::CallOp> &calls,
                           SmallVectorImpl<Value> &leaves) const {
  constexpr unsigned mostCalls = 16;
  constexpr int64_t mostNumbers = 1 << 20; // for each token, they are made again
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!seen.insert(op).second)
      continue;
    if (isLeaf(next)) {
      leaves.push_back(next);
      continue;
    }
    auto call = dyn_cast<graph::CallOp>(op);
    if (!call || !isByEntry(call) || calls.size() == mostCalls || axes.countAxes(next) > 1)
      return false;
    auto type = tokenType(next, axes);
    // What has an entry for each token is one number of its position, or of a row of its own.
    bool isOne = axes.countAxes(next) && !keepsTokens(call, axes);
    bool isIt = type && isa<FloatType>(type->getElementType()) &&
                type->getNumElements() <= (isOne ? 1 : mostNumbers);
    if (!type)
      llvm::consumeError(type.takeError());
    if (!isIt)
      return false;
    calls.push_back(call);
    llvm::append_range(work, call.getOperands());
  }
  llvm::sort(calls, [](graph::CallOp a, graph::CallOp b) { return a->isBeforeInBlock(b); });
  return !leaves.empty();
}

Value Raiser::ofStoredBeside(Value value, Value data) {
  const bool isRead = axes.isData(value);
  Value made = ofStored(value);
  std::optional<unsigned> tokens = axes.axis(data);
  if (!made || isRead || !tokens)
    return made;
  auto type = cast<graph::SymbolicType>(value.getType());
  // The axes of both are counted from the last one.
  int64_t behind = cast<graph::SymbolicType>(data.getType()).getRank() - int64_t(*tokens);
  if (std::optional<unsigned> own = axes.axis(value))
    return behind == type.getRank() - int64_t(*own) ? made : Value();
  int64_t rank = ranked(made).getRank();
  if (rank < 2 || behind > rank || type.getNumber(type.getRank() - behind) != 1)
    return made;
  SmallVector<int64_t> shape(ranked(made).getShape());
  shape.erase(shape.end() - behind);
  return reshaped(value.getLoc(), made,
                  RankedTensorType::get(shape, ranked(made).getElementType()));
}

Value Raiser::ofStored(Value value) {
  if (isData(value))
    return lookup(value);
  SmallVector<graph::CallOp> calls;
  SmallVector<Value> leaves;
  if (!collectStored(value, calls, leaves))
    return {};
  SmallVector<std::pair<Value, Value>> known; // what they stand for otherwise
  for (Value leaf : leaves) {
    Value made = leafOf(leaf);
    if (!made)
      continue;
    known.push_back({leaf, lookup(leaf)});
    bind(leaf, made);
    computed.insert(leaf);
  }
  for (graph::CallOp call : calls) {
    llvm::Expected<bool> raised = raiseByPattern(call);
    const bool isRaised = raised && *raised;
    llvm::consumeError(raised.takeError());
    if (!isRaised) // and what reads it has nothing to read
      break;
    computed.insert(call.getResults().begin(), call.getResults().end());
  }
  Value result = isData(value) ? lookup(value) : Value(); // also of a tensor itself
  for (auto [leaf, before] : known) {
    computed.erase(leaf);
    if (before)
      bind(leaf, before);
    else
      values.erase(leaf);
  }
  return result;
}
