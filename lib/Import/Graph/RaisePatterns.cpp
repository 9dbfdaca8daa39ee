// Norms and activations that a model spells out, op by op.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// x of x², however it is written; null where `value` is no square.
static Value rootOf(Value value) {
  value = beforeCopies(value);
  if (graph::CallOp power = callOf(value, "pow"); power && numberOf(power, "exponent") == 2.0)
    return power.getTensor("self") ? beforeCopies(power.getTensor("self")) : Value();
  if (graph::CallOp square = callOf(value, "square"))
    return beforeCopies(square.getOperand(0));
  if (graph::CallOp product = callOf(value, "mul"))
    if (std::optional<Sides> sides = sidesOf(product);
        sides && sides->right && beforeCopies(sides->left) == beforeCopies(sides->right))
      return beforeCopies(sides->left);
  return {};
}

/// x of x − mean x along the last axis.
static Value beforeCentring(Value value) {
  graph::CallOp difference = callOf(value, "sub");
  std::optional<Sides> sides = difference ? sidesOf(difference) : std::nullopt;
  graph::CallOp mean =
      sides && sides->right ? callOf(beforeCopies(sides->right), "mean") : graph::CallOp();
  bool isIt =
      mean && keepsLast(mean) && beforeCopies(mean.getTensor("self")) == beforeCopies(sides->left);
  return isIt ? sides->left : Value();
}

namespace {
/// What a norm divides by: √(measure of `data` + ε).
struct Divisor {
  Value data; ///< before copies
  xf::NormKind kind;
  double eps;
  bool centres;            ///< the measure is the variance
  double outside = 0;      ///< is added to the root
  double least = 0;        ///< the root counts as this where it is less
  bool isUnbiased = false; ///< of one degree of freedom less
};
} // namespace

/// What is under the root of a norm.
static std::optional<Divisor> measureOf(Value value) {
  Divisor divisor{{}, xf::NormKind::rms, 0, false};
  value = beforeCopies(value);
  if (graph::CallOp sum = callOf(value, "add")) {
    std::optional<Sides> sides = sidesOf(sum);
    if (!sides || !sides->number || *sides->number < 0 || !std::isfinite(*sides->number))
      return std::nullopt;
    divisor.eps = *sides->number;
    value = beforeCopies(sides->left);
  }
  if (graph::CallOp mean = callOf(value, "mean"); mean && keepsLast(mean)) {
    divisor.data = rootOf(mean.getTensor("self"));
  } else if (graph::CallOp sum = callOf(value, "sum"); sum && keepsLast(sum)) {
    divisor.data = rootOf(sum.getTensor("self"));
    divisor.kind = xf::NormKind::l2;
  } else if (graph::CallOp variance = callOf(value, "var"); variance && keepsLast(variance)) {
    // Bessel's correction is another divisor.
    auto unbiased = dyn_cast_or_null<BoolAttr>(variance.getArgument("unbiased"));
    bool isBiased = (unbiased && !unbiased.getValue()) || numberOf(variance, "correction") == 0.0;
    divisor.data = isBiased ? beforeCopies(variance.getTensor("self")) : Value();
    divisor.centres = true;
  }
  return divisor.data ? std::optional(divisor) : std::nullopt;
}

/// A deviation that torch computes in one op.
static std::optional<Divisor> deviationOf(graph::CallOp call) {
  auto unbiased = dyn_cast_or_null<BoolAttr>(call.getArgument("unbiased"));
  double correction =
      unbiased ? double(unbiased.getValue()) : numberOf(call, "correction").value_or(1);
  if (!keepsLast(call) || (correction != 0 && correction != 1))
    return std::nullopt;
  Divisor divisor{beforeCopies(call.getTensor("self")), xf::NormKind::rms, 0, true};
  divisor.isUnbiased = correction == 1;
  return divisor;
}

/// What `value` divides by where it is a factor, 1/√…; or as a divisor, √….
static std::optional<Divisor> divisorOf(Value value, bool isFactor) {
  value = beforeCopies(value);
  while (graph::CallOp repeated = callOf(value, "expand"))
    value = beforeCopies(repeated.getOperand(0));
  if (isFactor) {
    if (Value once = besideNumber(callOf(value, "mul"), 1))
      value = beforeCopies(once);
    if (graph::CallOp inverse = callOf(value, "reciprocal"))
      return divisorOf(inverse.getOperand(0), false);
  } else if (graph::CallOp sum = callOf(value, "add")) {
    std::optional<Sides> sides = sidesOf(sum);
    std::optional<Divisor> divisor =
        sides && sides->number && *sides->number > 0 && std::isfinite(float(*sides->number))
            ? divisorOf(sides->left, false)
            : std::nullopt;
    if (!divisor || divisor->outside || divisor->least)
      return std::nullopt;
    divisor->outside = *sides->number;
    return divisor;
  } else if (graph::CallOp limit = callOf(value, "clamp_min") ? callOf(value, "clamp_min")
                                   : callOf(value, "clamp")   ? callOf(value, "clamp")
                                                              : graph::CallOp()) {
    std::optional<double> least = numberOf(limit, "min");
    std::optional<Divisor> divisor = least && *least > 1e-30 && !limit.getArgument("max")
                                         ? divisorOf(limit.getTensor("self"), false)
                                         : std::nullopt;
    if (!divisor || divisor->outside || divisor->least)
      return std::nullopt;
    divisor->least = *least;
    return divisor;
  }
  if (graph::CallOp deviation = isFactor ? graph::CallOp() : callOf(value, "std"))
    return deviationOf(deviation);
  if (graph::CallOp root = callOf(value, isFactor ? "rsqrt" : "sqrt"))
    return measureOf(root.getOperand(0));
  if (graph::CallOp power = callOf(value, "pow");
      power && numberOf(power, "exponent") == (isFactor ? -0.5 : 0.5) && power.getTensor("self"))
    return measureOf(power.getTensor("self"));
  return std::nullopt;
}

std::pair<Value, double> Raiser::withoutNumber(Value value) const {
  value = beforeCopies(value);
  if (graph::CallOp sum = callOf(value, "add"))
    if (std::optional<Sides> parts = sidesOf(sum); parts && parts->number && *parts->number >= 0)
      return {beforeCopies(parts->left), *parts->number};
  return {value, 0};
}

/// w / (Σ w + ε) along the last axis.
Value Raiser::dividedBySum(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  if (!sides || !sides->right || call.getBaseName() != "div")
    return {};
  auto [by, eps] = withoutNumber(sides->right);
  graph::CallOp sum = callOf(by, "sum");
  Value data = beforeCopies(sides->left), from = lookup(sides->left);
  bool isIt = sum && keepsLast(sum) && sum.getTensor("self") && axes.isData(data) && from &&
              beforeCopies(sum.getTensor("self")) == data && std::isfinite(eps);
  auto type = isIt ? dyn_cast<RankedTensorType>(from.getType()) : RankedTensorType();
  if (!type || !isa<Float32Type>(type.getElementType()) ||
      tokenDim(sides->left, -1) != type.getRank() - 1)
    return {};
  return xf::NormalizeOp::create(builder, call.getLoc(), xf::NormKind::sum, from,
                                 llvm::APFloat(eps));
}

Value Raiser::writtenNorm(graph::CallOp call) {
  if (Value shares = dividedBySum(call))
    return shares;
  std::optional<Sides> sides = sidesOf(call);
  if (!sides || !sides->right)
    return {};
  bool isFactor = call.getBaseName() == "mul";
  std::pair<Value, Value> orders[] = {{sides->left, sides->right}, {sides->right, sides->left}};
  for (auto [factor, by] : ArrayRef(orders).take_front(isFactor ? 2 : 1)) {
    Value x = factor;
    std::optional<Divisor> divisor = divisorOf(by, isFactor);
    if (!divisor || !axes.isData(x))
      continue;
    // (W x) / |x| = W (x / |x|).
    graph::CallOp product = isFactor ? callOf(beforeCopies(x), "linear") : graph::CallOp();
    if (product && !product.getTensor("bias") && divisor->data != beforeCopies(x))
      x = product.getTensor("input");
    else
      product = {};
    Value data = beforeCopies(x), centred = beforeCentring(data);
    // The centred values may be written twice.
    Value again = beforeCentring(divisor->data);
    bool isLayer =
        centred && (divisor->centres ? divisor->data == beforeCopies(centred)
                                     : divisor->data == data ||
                                           (again && beforeCopies(again) == beforeCopies(centred)));
    if (isLayer ? divisor->kind != xf::NormKind::rms : divisor->centres || divisor->data != data)
      continue;
    Value from = lookup(isLayer ? centred : x);
    auto type = from ? dyn_cast<RankedTensorType>(from.getType()) : RankedTensorType();
    // Along the last axis of the token's value.
    if (!type || !isa<Float32Type>(type.getElementType()) || tokenDim(x, -1) != type.getRank() - 1)
      continue;
    graph::StoredOp matrix = product ? storedOf(product.getTensor("weight")) : graph::StoredOp();
    if (product && (!matrix || type.getRank() != 1))
      continue;
    xf::NormKind kind = isLayer ? xf::NormKind::layer : divisor->kind;
    Value norm;
    if (!divisor->outside && !divisor->least && !divisor->isUnbiased)
      norm =
          xf::NormalizeOp::create(builder, call.getLoc(), kind, from, llvm::APFloat(divisor->eps));
    else if (divisor->eps == 0 && type.getRank() == 1)
      norm = limitedNorm(call.getLoc(), kind, from, divisor->outside, divisor->least,
                         divisor->isUnbiased);
    if (norm && product)
      norm = xf::LinearOp::create(builder, call.getLoc(), weightOf(matrix), norm,
                                  /*transposed=*/false);
    if (norm)
      return norm;
  }
  return {};
}

/// x / (|x| + ε) and x / max(|x|, ε) for a measure |x|: the norm without ε, times |x| / (|x| + ε)
/// or min(|x| / ε, 1), which are at most 1. `outside` or `least` is ε, or neither.
Value Raiser::limitedNorm(Location loc, xf::NormKind kind, Value x, double outside, double least,
                          bool isUnbiased) {
  constexpr double tiny = 1e-36; // no zero is divided by zero
  int64_t width = ranked(x).getDimSize(0);
  auto column = RankedTensorType::get({width, 1}, builder.getF32Type());
  Value norm = xf::NormalizeOp::create(builder, loc, kind, x, llvm::APFloat(tiny));
  auto times = [&](Value of, double c) {
    return xf::TimesOp::create(builder, loc, of, llvm::APFloat(float(c)));
  };
  // What torch's deviation is more than the root of the variance.
  double more = isUnbiased && width > 1 ? std::sqrt(double(width) / double(width - 1)) : 1;
  if (outside || least) {
    // The root of the sum of squares, or of their mean; centred where the norm is.
    Value from = x;
    if (kind == xf::NormKind::layer) {
      Value mean = xf::CombineOp::create(builder, loc, xf::createOnes(builder, loc, {width}),
                                         reshaped(loc, x, column));
      mean = times(mean, 1 / double(width));
      from = xf::SubOp::create(builder, loc, x, repeated(loc, mean, ranked(x)));
    }
    auto block = RankedTensorType::get({width, 1, 1}, builder.getF32Type());
    auto one = RankedTensorType::get({1}, builder.getF32Type());
    Value size = xf::CombineOp::create(builder, loc, from, reshaped(loc, from, block));
    size = activation(loc, xf::ActivationKind::sqrt, size);
    size = reshaped(loc, size, one);
    if (kind != xf::NormKind::l2)
      size = times(size, more / std::sqrt(double(width)));
    Value part = outside ? Value(xf::DivOp::create(builder, loc, size, plus(loc, size, outside)))
                         : Value(xf::ClampOp::create(builder, loc, times(size, 1 / least),
                                                     llvm::APFloat(1.0f), /*above=*/true));
    norm = xf::MulOp::create(builder, loc, norm, part);
  }
  return more == 1 ? norm : times(norm, 1 / more);
}

/// v, if `value` is v times `number`; null otherwise.
static Value beforeTimes(Value value, double number) {
  value = beforeCopies(value);
  if (Value product = besideNumber(callOf(value, "mul"), number))
    return beforeCopies(product);
  Value quotient = besideNumber(callOf(value, "div"), 1 / number);
  return quotient ? beforeCopies(quotient) : Value();
}

/// Whether `value` is √(2/π) x (1 + 0.044715 x x).
static bool isBentProduct(Value value, Value x) {
  graph::CallOp product = callOf(beforeCopies(value), "mul");
  std::optional<Sides> sides = product ? sidesOf(product) : std::nullopt;
  Value bent = sides && sides->right && beforeTimes(sides->left, std::sqrt(2 / M_PI)) == x
                   ? besideNumber(callOf(beforeCopies(sides->right), "add"), 1)
                   : Value();
  graph::CallOp square = bent ? callOf(beforeCopies(bent), "mul") : graph::CallOp();
  std::optional<Sides> roots = square ? sidesOf(square) : std::nullopt;
  return roots && roots->right && beforeTimes(roots->left, 0.044715) == x &&
         beforeCopies(roots->right) == x;
}

/// Whether `factor` is 1 + tanh(√(2/π) (x + 0.044715 x³)).
bool Raiser::spellsTanhGelu(Value factor, Value x) const {
  Value bend = besideNumber(callOf(beforeCopies(factor), "add"), 1);
  graph::CallOp tanh = bend ? callOf(beforeCopies(bend), "tanh") : graph::CallOp();
  if (tanh && isBentProduct(tanh.getOperand(0), x))
    return true;
  Value inner = tanh ? beforeTimes(tanh.getOperand(0), std::sqrt(2 / M_PI)) : Value();
  graph::CallOp sum = inner ? callOf(inner, "add") : graph::CallOp();
  std::optional<Sides> sides = sum ? sidesOf(sum) : std::nullopt;
  if (!sides || !sides->right || beforeCopies(sides->left) != x)
    return false;
  Value cube = beforeTimes(sides->right, 0.044715);
  graph::CallOp power = cube ? callOf(cube, "pow") : graph::CallOp();
  return power && numberOf(power, "exponent") == 3.0 && power.getTensor("self") &&
         beforeCopies(power.getTensor("self")) == x;
}

Value Raiser::writtenActivation(graph::CallOp call) {
  using Kind = xf::ActivationKind;
  std::optional<Sides> sides = sidesOf(call);
  if (!sides || call.getBaseName() != "mul")
    return {};
  if (sides->number) { // c tanh(x / c)
    graph::CallOp tanh = callOf(beforeCopies(sides->left), "tanh");
    Value x =
        tanh && *sides->number > 0 ? beforeTimes(tanh.getOperand(0), 1 / *sides->number) : Value();
    Value from = x ? lookup(x) : Value();
    if (!from || !std::isfinite(float(*sides->number)))
      return {};
    return xf::SoftcapOp::create(builder, call.getLoc(), from,
                                 llvm::APFloat(float(*sides->number)));
  }
  for (auto [left, factor] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    Value x = beforeCopies(left);
    if (graph::CallOp gate = callOf(beforeCopies(factor), "sigmoid")) {
      Value inner = beforeCopies(gate.getOperand(0));
      bool isQuick = inner != x && beforeTimes(inner, 1.702) == x;
      if (Value from = lookup(left); from && (inner == x || isQuick))
        return activation(call.getLoc(), isQuick ? Kind::quick_gelu : Kind::silu, from);
    }
    Value half = beforeTimes(x, 0.5);
    if (Value from = half ? lookup(half) : Value(); from && spellsTanhGelu(factor, half))
      return activation(call.getLoc(), Kind::gelu_tanh, from);
  }
  for (auto [left, factor] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    graph::CallOp sum = callOf(beforeCopies(left), "add");
    // (x + c) y = x y + c y.
    std::optional<Sides> shifted = sum ? sidesOf(sum) : std::nullopt;
    if (Value y = shifted && shifted->number && isData(factor) ? lookup(factor) : Value()) {
      Value a = isData(shifted->left) ? lookup(shifted->left) : Value();
      float number = float(*shifted->number);
      if (a && a.getType() == y.getType() && std::isfinite(number)) {
        Value product = xf::MulOp::create(builder, call.getLoc(), a, y);
        Value rest = xf::TimesOp::create(builder, call.getLoc(), y, llvm::APFloat(number));
        return xf::AddOp::create(builder, call.getLoc(), product, rest);
      }
    }
  }
  return {};
}

/// W x of a stored matrix on the left, with the tokens side by side on the right.
mlir::Value Raiser::productFromLeft(graph::CallOp call) {
  mlir::Value right = call.getTensor("other");
  mlir::Value x = right && isData(right) ? lookup(right) : mlir::Value();
  graph::StoredOp stored = storedOf(call.getTensor("self"));
  auto shapeOf = [](mlir::Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
  if (!x || !stored || shapeOf(x).size() != 1 ||
      axes.axis(right) != unsigned(cast<graph::SymbolicType>(right.getType()).getRank() - 1))
    return {};
  mlir::Value weight = weightOf(stored);
  if (shapeOf(weight).size() != 2 || shapeOf(weight)[1] != shapeOf(x)[0])
    return {};
  return xf::LinearOp::create(builder, call.getLoc(), weight, x, /*transposed=*/false);
}
