#include "GraphValues.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

std::optional<std::vector<double>> ctxc::pt2::writtenNumbers(graph::StoredOp stored) {
  auto value = dyn_cast_or_null<DenseElementsAttr>(stored.getValueAttr());
  if (!value)
    return std::nullopt;
  auto numbers = value.getValues<double>();
  return std::vector<double>(numbers.begin(), numbers.end());
}

graph::CallOp ctxc::pt2::callOf(Value value, StringRef base) {
  auto call = value ? value.getDefiningOp<graph::CallOp>() : graph::CallOp();
  bool isIt = call && call.getTarget().starts_with("aten.") && call.getBaseName() == base;
  return isIt ? call : graph::CallOp();
}

Value ctxc::pt2::beforeCopies(Value value) {
  auto isFloat = [](Value v) { return isa<FloatType>(elementOf(v)); };
  while (true) {
    auto copy = value.getDefiningOp<graph::CallOp>();
    const graph::AtenOp *op = copy ? graph::atenOp(copy) : nullptr;
    if (!op || op->kind != graph::AtenKind::Copies)
      return value;
    if (copy.getOperands().empty() || !isFloat(value) || !isFloat(copy.getOperand(0)))
      return value;
    auto train = dyn_cast_or_null<BoolAttr>(copy.getArgument("train"));
    if (train && train.getValue())
      return value;
    value = copy.getOperand(0);
  }
}

graph::CallOp ctxc::pt2::computedBy(Value value) {
  SmallVector<Operation *> work{value.getDefiningOp()};
  while (!work.empty()) {
    auto call = dyn_cast<graph::CallOp>(work.pop_back_val());
    if (!call)
      continue;
    const graph::AtenOp *op = graph::atenOp(call);
    if (op && (op->kind == graph::AtenKind::Entries || op->kind == graph::AtenKind::Joins))
      return call;
    for (Value operand : call.getOperands())
      work.push_back(operand.getDefiningOp());
  }
  return {};
}

std::optional<double> ctxc::pt2::numberOf(graph::CallOp call, StringRef name) {
  Attribute argument = call.getArgument(name);
  if (auto number = dyn_cast_or_null<FloatAttr>(argument))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(argument); number && !isa<BoolAttr>(argument))
    return double(number.getInt());
  return std::nullopt;
}

std::optional<int64_t> ctxc::pt2::integerOf(graph::CallOp call, StringRef name) {
  Attribute argument = call.getArgument(name);
  auto number = dyn_cast_or_null<IntegerAttr>(argument);
  return number && !isa<BoolAttr>(argument) ? std::optional(number.getInt()) : std::nullopt;
}

std::optional<Sides> ctxc::pt2::sidesOf(graph::CallOp call) {
  for (NamedAttribute argument : call.getArguments())
    if (argument.getName() != "self" && argument.getName() != "other" &&
        !(argument.getName() == "alpha" && numberOf(call, "alpha") == 1.0))
      return std::nullopt;
  Sides sides{call.getTensor("self"), call.getTensor("other"), numberOf(call, "other")};
  if (!sides.left || (!sides.right && !sides.number))
    return std::nullopt;
  return sides;
}

Value ctxc::pt2::besideNumber(graph::CallOp call, double number) {
  std::optional<Sides> sides = call ? sidesOf(call) : std::nullopt;
  // Numbers such as √(2/π) are rounded in their own ways.
  bool isIt =
      sides && sides->number && std::abs(*sides->number - number) <= 1e-6 * std::abs(number);
  return isIt ? sides->left : Value();
}

bool ctxc::pt2::keepsLast(graph::CallOp call) {
  auto type = cast<graph::SymbolicType>(call.getOperand(0).getType());
  auto isLast = [&](Attribute dim) {
    auto number = dyn_cast_or_null<IntegerAttr>(dim);
    return number && (number.getInt() == -1 || number.getInt() == type.getRank() - 1);
  };
  auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dim"));
  bool along = dims ? dims.size() == 1 && isLast(dims[0]) : isLast(call.getArgument("dim"));
  auto keeps = dyn_cast_or_null<BoolAttr>(call.getArgument("keepdim"));
  return along && keeps && keeps.getValue();
}

/// Where each axis of the result comes from; empty where it is not known.
SmallVector<int64_t> ctxc::pt2::orderOf(graph::CallOp call) {
  int64_t rank = cast<graph::SymbolicType>(call.getOperand(0).getType()).getRank();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  auto front = [&](int64_t dim) { return dim + (dim < 0 ? rank : 0); };
  StringRef name = call.getBaseName();
  if (name == "transpose") {
    std::optional<int64_t> a = integerOf(call, "dim0"), b = integerOf(call, "dim1");
    if (!a || !b || front(*a) < 0 || front(*a) >= rank || front(*b) < 0 || front(*b) >= rank)
      return {};
    std::swap(order[front(*a)], order[front(*b)]);
  } else if (name == "permute") {
    auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dims"));
    if (!dims || int64_t(dims.size()) != rank)
      return {};
    for (auto [to, dim] : llvm::zip(order, dims)) {
      auto number = dyn_cast<IntegerAttr>(dim);
      if (!number || front(number.getInt()) < 0 || front(number.getInt()) >= rank)
        return {};
      to = front(number.getInt());
    }
  } else {
    std::reverse(order.begin(), order.end());
  }
  return order;
}

mlir::FloatType ctxc::pt2::arithmeticOf(graph::ProgramOp program) {
  FloatType narrowest = Float32Type::get(program.getContext());
  for (auto call : program.getBody().getOps<graph::CallOp>()) {
    const graph::AtenOp *op = graph::atenOp(call);
    bool isCopy = op && op->keepsNumbers(); // which were computed before
    for (Value result : call.getResults()) {
      auto type = dyn_cast<graph::SymbolicType>(result.getType());
      auto element = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
      if (!isCopy && element && element.getFPMantissaWidth() < narrowest.getFPMantissaWidth())
        narrowest = element;
    }
  }
  return narrowest;
}

bool ctxc::pt2::isMatrix(xf::SettingOp setting) {
  return llvm::any_of(setting->getUsers(), [&](Operation *user) {
    auto linear = dyn_cast<xf::LinearOp>(user);
    return linear && linear.getWeight() == setting.getResult();
  });
}
