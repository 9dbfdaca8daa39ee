// Functions that are applied entry by entry and are made of ops of xf, and orders of entries.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

Value Raiser::negated(Location loc, Value x) {
  return xf::TimesOp::create(builder, loc, x, llvm::APFloat(-1.0f));
}

/// min(max(x, low), high).
Value Raiser::limited(Location loc, Value x, std::optional<double> low,
                      std::optional<double> high) {
  auto to = [&](Value of, double most, bool above) {
    return xf::ClampOp::create(builder, loc, of, llvm::APFloat(float(most)), above);
  };
  if (low && high && *low == -*high && *high > 0)
    return to(x, *high, false);
  // max(x, a) = relu(x − a) + a, and min(x, b) = b − relu(b − x).
  if (low)
    x = plus(loc, activation(loc, xf::ActivationKind::relu, plus(loc, x, -*low)), *low);
  if (high && *high > 0)
    return to(x, *high, true);
  if (!high)
    return x;
  Value rest = activation(loc, xf::ActivationKind::relu, plus(loc, negated(loc, x), *high));
  return plus(loc, negated(loc, rest), *high);
}

/// max(x, 0) + α (e^(β min(x, 0)) − 1), times a scale.
Raiser::Results Raiser::elu(graph::CallOp call) {
  double alpha = numberOf(call, "alpha").value_or(1), scale = numberOf(call, "scale").value_or(1),
         beta = numberOf(call, "input_scale").value_or(1);
  Value x = lookup(call.getOperand(0));
  Location loc = call.getLoc();
  auto times = [&](Value of, double c) -> Value {
    return c == 1 ? of : Value(xf::TimesOp::create(builder, loc, of, llvm::APFloat(float(c))));
  };
  auto relu = xf::ActivationKind::relu;
  Value below = times(activation(loc, relu, negated(loc, x)), -beta);
  Value curve = plus(loc, activation(loc, xf::ActivationKind::exp, below), -1);
  Value y = xf::AddOp::create(builder, loc, activation(loc, relu, x), times(curve, alpha));
  return {times(y, scale)};
}

Raiser::Results Raiser::leaky(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  double slope = numberOf(call, "negative_slope").value_or(0.01);
  if (!std::isfinite(float(slope)) || float(slope) <= 0)
    return {};
  return {xf::LeakyOp::create(builder, call.getLoc(), x, llvm::APFloat(float(slope)))};
}

/// relu(x) − a ⊙ relu(−x), where a has a slope for each entry along the axis behind the first.
Raiser::Results Raiser::prelu(graph::CallOp call) {
  Value of = call.getTensor("self"), x = lookup(of), weight = call.getTensor("weight");
  Location loc = call.getLoc();
  auto type = x ? ranked(x) : RankedTensorType();
  graph::StoredOp stored = storedOf(weight);
  if (!x || !stored || type.getRank() != 1)
    return {};
  auto relu = xf::ActivationKind::relu;
  Value below = activation(loc, relu, negated(loc, x));
  bool isOne = cast<graph::SymbolicType>(stored.getType()).getNumber(0) == 1;
  bool isOfEntries = tokenDim(of, 1) == 0;
  Value curve = isOne         ? withNumber(loc, below, weight)
                : isOfEntries ? withScale(loc, below, weight)
                              : Value();
  if (!curve)
    return {};
  return {xf::SubOp::create(builder, loc, activation(loc, relu, x), curve)};
}

Raiser::Results Raiser::power(graph::CallOp call) {
  Value x = lookup(call.getTensor("self"));
  std::optional<double> exponent = call.getBaseName() == "square" ? 2 : numberOf(call, "exponent");
  if (x && exponent == 3.0)
    return {xf::PowerOp::create(builder, call.getLoc(), x, 3, /*root=*/false)};
  if (!x || exponent != 2.0)
    return {};
  if (graph::CallOp relu = callOf(beforeCopies(call.getTensor("self")), "relu"))
    if (Value inner = lookup(relu.getOperand(0)))
      return {activation(call.getLoc(), xf::ActivationKind::relu2, inner)};
  return {xf::MulOp::create(builder, call.getLoc(), x, x)};
}

/// Whether no entry of `value` can be below zero, by the op that makes it.
static bool isNotNegative(Value value) {
  value = beforeCopies(value);
  auto call = value.getDefiningOp<graph::CallOp>();
  StringRef name = call ? call.getBaseName() : StringRef();
  if (name == "mean" || name == "sum")
    return call.getTensor("self") && isNotNegative(call.getTensor("self"));
  if (name == "clamp" || name == "clamp_min")
    return numberOf(call, "min").value_or(-1) >= 0;
  if (name == "pow")
    return numberOf(call, "exponent") == 2.0;
  return llvm::is_contained({"abs", "exp", "relu", "sigmoid", "softplus", "softmax", "square"},
                            name);
}

/// Of what is not negative: elsewhere PyTorch's is no number, and xf's is 0.
Raiser::Results Raiser::root(graph::CallOp call) {
  Value from = call.getTensor("self"), x = from ? lookup(from) : Value();
  if (!x || !isNotNegative(from))
    return {};
  return {activation(call.getLoc(), xf::ActivationKind::sqrt, x)};
}

/// Of limits that the op has in its name.
Raiser::Results Raiser::limits(graph::CallOp call) {
  StringRef name = call.getBaseName();
  Value x = lookup(call.getOperand(0));
  Location loc = call.getLoc();
  if (name == "abs")
    return {activation(loc, xf::ActivationKind::abs, x)};
  if (name == "hardtanh" || name == "relu6") {
    double low = name == "relu6" ? 0 : numberOf(call, "min_val").value_or(-1),
           high = name == "relu6" ? 6 : numberOf(call, "max_val").value_or(1);
    bool areLimits = std::isfinite(float(low)) && std::isfinite(float(high)) && low <= high;
    return areLimits ? Results{limited(loc, x, low, high)} : Results{};
  }
  // hardsigmoid is relu6(x + 3) / 6, and hardswish x times that.
  Value gate = limited(loc, plus(loc, x, 3), 0.0, 6.0);
  gate = xf::TimesOp::create(builder, loc, gate, llvm::APFloat(1.0f / 6));
  return {name == "hardswish" ? Value(xf::MulOp::create(builder, loc, x, gate)) : gate};
}

//===----------------------------------------------------------------------===//
// Orders of entries
//===----------------------------------------------------------------------===//

/// The numbers in a list argument.
static SmallVector<int64_t> integersOf(graph::CallOp call, StringRef name) {
  SmallVector<int64_t> numbers;
  if (auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument(name)))
    for (Attribute each : list)
      if (auto number = dyn_cast<IntegerAttr>(each))
        numbers.push_back(number.getInt());
  return numbers;
}

/// A roll is two parts in the other order; a flip is one of single entries.
Raiser::Results Raiser::reordered(graph::CallOp call) {
  Value of = call.getTensor("self"), x = lookup(of);
  SmallVector<int64_t> dims = integersOf(call, "dims"), shifts = integersOf(call, "shifts");
  bool isRoll = call.getBaseName() == "roll";
  std::optional<int64_t> dim = dims.size() == 1 ? tokenDim(of, dims[0]) : std::nullopt;
  constexpr int64_t most = 4096;
  if (!x || !dim || !isFloat(x) || (isRoll && shifts.size() != 1))
    return {};
  int64_t size = ranked(x).getDimSize(*dim);
  SmallVector<int64_t> sizes, order;
  if (isRoll) {
    int64_t by = ((shifts[0] % size) + size) % size;
    if (by == 0)
      return {x};
    sizes = {size - by, by};
    order = {1, 0};
  } else if (size <= most) {
    sizes.assign(size, 1);
    order = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, size)));
  } else {
    return {};
  }
  return {xf::PermuteOp::create(builder, call.getLoc(), x.getType(), x, sizes, order, *dim)};
}

/// Entries by a list of indices of the program, each of them once; null where it is no such.
Value Raiser::permutedByList(graph::CallOp call) {
  Value of = call.getTensor("self"), x = lookup(of);
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"));
  if (!x || !list || !isFloat(x))
    return {};
  std::optional<int64_t> along;
  Value index;
  for (auto [axis, entry] : llvm::enumerate(list))
    if (auto operand = dyn_cast<graph::OperandAttr>(entry)) {
      if (index)
        return {};
      index = call.getOperand(operand.getIndex());
      along = tokenDim(of, axis);
    }
  while (graph::CallOp copy = callOf(index, "clone"))
    index = copy.getOperand(0);
  auto stored = index ? index.getDefiningOp<graph::StoredOp>() : graph::StoredOp();
  std::optional<std::vector<double>> numbers =
      stored && along ? rotations.numbersOf()(stored) : std::nullopt;
  if (!numbers)
    return {};
  SmallVector<int64_t> order(numbers->begin(), numbers->end()), sorted(order);
  int64_t dim = *along;
  llvm::sort(sorted);
  bool isPermutation = int64_t(order.size()) == ranked(x).getDimSize(dim) &&
                       llvm::equal(sorted, llvm::seq<int64_t>(0, int64_t(order.size())));
  if (!isPermutation)
    return {};
  SmallVector<int64_t> sizes(order.size(), 1);
  return xf::PermuteOp::create(builder, call.getLoc(), x.getType(), x, sizes, order, dim);
}

/// A matrix of ones on and below the diagonal.
Raiser::Results Raiser::summedUp(graph::CallOp call) {
  Value of = call.getTensor("self"), x = lookup(of);
  std::optional<int64_t> dim = integerOf(call, "dim"),
                         own = dim ? tokenDim(of, *dim) : std::nullopt;
  constexpr int64_t most = 512;
  if (!x || own != ranked(x).getRank() - 1 || ranked(x).getShape().back() > most)
    return {};
  int64_t n = ranked(x).getShape().back();
  SmallVector<float> ones(n * n, 0);
  for (int64_t row = 0; row < n; ++row)
    std::fill_n(ones.begin() + row * n, row + 1, 1.0f);
  auto type = RankedTensorType::get({n, n}, builder.getF32Type());
  Value matrix = setting(call.getLoc(), "sums_to_" + std::to_string(n), type,
                         DenseElementsAttr::get(type, ArrayRef(ones)));
  return {xf::LinearOp::create(builder, call.getLoc(), matrix, x, /*transposed=*/false)};
}
