// Functions of entries: each result of the entries in the same place.
#include "Calls.h"
#include "dialects/XF/Functions.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <complex>

using namespace ctxc;
using namespace ctxc::reference;

using Unary = double (*)(double);
using Binary = double (*)(double, double);

template <typename Function> static Array mapped(const Array &x, Function f) {
  Array result(x.isComplex() ? Kind::Complex : Kind::Float, x.shape());
  double *to = result.data();
  eachPlace(x, [&](int64_t place) { *to++ = f(x.at(place)); });
  return result;
}

/// Functions of one number, and of two, by name.
static const llvm::StringMap<Unary> &unaries();
static const llvm::StringMap<Binary> &binaries();

static Results unary(Call &c) {
  Array x = c.tensor("self");
  if (x.isComplex()) {
    c.fail("has complex numbers, for which it has no meaning here");
    return {};
  }
  return {mapped(x, unaries().lookup(c.name()))};
}

/// Entries of two arrays in the shape that they have together, and f of them.
template <typename Function>
static Results joined(Call &c, const Array &a, const Array &b, Function f) {
  std::optional<Shape> shape = broadcast(a.shape(), b.shape());
  if (!shape) {
    c.fail("has operands whose shapes do not fit");
    return {};
  }
  Array left = a.expanded(*shape)->contiguous(), right = b.expanded(*shape)->contiguous();
  bool isComplex = left.isComplex() || right.isComplex();
  Array result(isComplex ? Kind::Complex : Kind::Float, *shape);
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    if constexpr (std::is_invocable_v<Function, std::complex<double>, std::complex<double>>) {
      std::complex<double> z = f(std::complex(left.at(i), left.imaginary(i)),
                                 std::complex(right.at(i), right.imaginary(i)));
      result.data()[isComplex ? 2 * i : i] = z.real();
      if (isComplex)
        result.data()[2 * i + 1] = z.imag();
    } else {
      result.data()[i] = f(left.at(i), right.at(i));
    }
  }
  if (isComplex && !std::is_invocable_v<Function, std::complex<double>, std::complex<double>>)
    c.fail("has complex numbers, for which it has no meaning here");
  return {result};
}

static Results binary(Call &c) {
  // Of two tensors, max and min have the names of what goes along an axis.
  llvm::StringRef name = c.name() == "max" ? "maximum" : c.name() == "min" ? "minimum" : c.name();
  return joined(c, c.tensorOrNumber("self"), c.tensorOrNumber("other"), binaries().lookup(name));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

using Complex = std::complex<double>;

static Results add(Call &c) {
  double sign = c.name() == "add" ? 1 : -1, alpha = sign * c.number("alpha", 1);
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  if (c.name() == "rsub")
    std::swap(a, b);
  if (a.isComplex() || b.isComplex())
    return joined(c, a, b, [=](Complex x, Complex y) { return x + alpha * y; });
  return joined(c, a, b, [=](double x, double y) { return x + alpha * y; });
}

static Results multiply(Call &c) {
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  if (a.isComplex() || b.isComplex())
    return joined(c, a, b, [](Complex x, Complex y) { return x * y; });
  return joined(c, a, b, [](double x, double y) { return x * y; });
}

static Results divide(Call &c) {
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  llvm::StringRef mode = c.name() == "floor_divide" ? "floor" : c.text("rounding_mode", "");
  if (mode == "floor")
    return joined(c, a, b, [](double x, double y) { return std::floor(x / y); });
  if (mode == "trunc")
    return joined(c, a, b, [](double x, double y) { return std::trunc(x / y); });
  return joined(c, a, b, [](double x, double y) { return x / y; });
}

static Results power(Call &c) {
  return joined(c, c.tensorOrNumber("self"), c.tensorOrNumber("exponent"),
                [](double x, double y) { return std::pow(x, y); });
}

static Results where(Call &c) {
  Array condition = c.tensor("condition");
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  std::optional<Shape> shape = broadcast(a.shape(), b.shape());
  shape = shape ? broadcast(*shape, condition.shape()) : shape;
  if (!shape || a.isComplex() || b.isComplex()) {
    c.fail("has operands whose shapes do not fit, or complex ones");
    return {};
  }
  Array left = a.expanded(*shape)->contiguous(), right = b.expanded(*shape)->contiguous();
  Array chosen = condition.expanded(*shape)->contiguous(), result(Kind::Float, *shape);
  for (int64_t i = 0, n = result.count(); i < n; ++i)
    result.data()[i] = chosen.at(i) != 0 ? left.at(i) : right.at(i);
  return {result};
}

static Results maskedFill(Call &c) {
  Array x = c.tensor("self"), mask = c.tensor("mask"), value = c.tensorOrNumber("value");
  std::optional<Array> wide = mask.expanded(x.shape());
  if (!wide || value.count() != 1 || x.isComplex()) {
    c.fail("has a mask or a value that does not fit");
    return {};
  }
  Array result = x.copied().as(c.resultKind()).copied(), chosen = wide->contiguous();
  for (int64_t i = 0, n = result.count(); i < n; ++i)
    if (chosen.at(i) != 0)
      result.data()[i] = value.at(0);
  return {result};
}

static Results clamp(Call &c) {
  Results result{c.tensor("self")};
  for (llvm::StringRef bound : {"min", "max"})
    if (c.has(bound) && c.failure().empty())
      result = joined(c, result.front(), c.tensorOrNumber(bound), [&](double x, double y) {
        return bound == "min" ? std::max(x, y) : std::min(x, y);
      });
  return result;
}

static Results polar(Call &c) {
  Array size = c.tensor("abs").contiguous(), angle = c.tensor("angle").contiguous();
  Array result(Kind::Complex, size.shape());
  if (size.count() != angle.count())
    c.fail("has operands whose shapes do not fit");
  for (int64_t i = 0; c.failure().empty() && i < size.count(); ++i) {
    result.data()[2 * i] = size.at(i) * std::cos(angle.at(i));
    result.data()[2 * i + 1] = size.at(i) * std::sin(angle.at(i));
  }
  return {result};
}

//===----------------------------------------------------------------------===//
// Functions of one number
//===----------------------------------------------------------------------===//

using xf::functions::relu;
using xf::functions::sigmoid;
using xf::functions::softplus;

static Results gelu(Call &c) {
  auto kind = c.text("approximate", "none") == "tanh" ? xf::ActivationKind::gelu_tanh
                                                      : xf::ActivationKind::gelu;
  return {mapped(c.tensor("self"), [=](double x) { return xf::activate(kind, x); })};
}

static Results scaledSoftplus(Call &c) {
  double beta = c.number("beta", 1), threshold = c.number("threshold", 20);
  return {mapped(c.tensor("self"),
                 [=](double x) { return beta * x > threshold ? x : softplus(beta * x) / beta; })};
}

static Results elu(Call &c) {
  double alpha = c.number("alpha", 1), scale = c.number("scale", 1);
  return {mapped(c.tensor("self"),
                 [=](double x) { return scale * (x > 0 ? x : alpha * std::expm1(x)); })};
}

static Results leakyRelu(Call &c) {
  double slope = c.number("negative_slope", 0.01);
  return {mapped(c.tensor("self"), [=](double x) { return x > 0 ? x : slope * x; })};
}

static Results bitwiseNot(Call &c) {
  Array x = c.tensor("self");
  bool isFlag = x.kind() == Kind::Bool || c.name() == "logical_not";
  return {mapped(x, [=](double number) { return isFlag ? double(number == 0) : -number - 1; })};
}

static double inverseErf(double y) {
  if (!(std::abs(y) < 1))
    return std::abs(y) == 1 ? std::copysign(INFINITY, y) : NAN;
  // Winitzki's estimate, made exact by Newton's steps.
  double a = 0.147, l = std::log1p(-y * y), t = 2 / (M_PI * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), y);
  for (int step = 0; step < 4; ++step)
    x -= (std::erf(x) - y) * std::sqrt(M_PI) / 2 * std::exp(x * x);
  return x;
}

static double modulo(double x, double y) { return x - std::floor(x / y) * y; }

/// Bits of integers below 2⁵³, or flags.
template <typename Function> static Results bits(Call &c, Function f) {
  return joined(c, c.tensorOrNumber("self"), c.tensorOrNumber("other"),
                [&](double x, double y) { return double(f(int64_t(x), int64_t(y))); });
}
static Results bitwiseAnd(Call &c) { return bits(c, std::bit_and<int64_t>()); }
static Results bitwiseOr(Call &c) { return bits(c, std::bit_or<int64_t>()); }
static Results bitwiseXor(Call &c) { return bits(c, std::bit_xor<int64_t>()); }

static const llvm::StringMap<Unary> &unaries() {
  static const llvm::StringMap<Unary> all = {
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::abs(x); }},
      {"sign", [](double x) { return double((x > 0) - (x < 0)); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},
      {"expm1", [](double x) { return std::expm1(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"log2", [](double x) { return std::log2(x); }},
      {"log1p", [](double x) { return std::log1p(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"square", [](double x) { return x * x; }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"erfinv", inverseErf},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"trunc", [](double x) { return std::trunc(x); }},
      {"isnan", [](double x) { return double(std::isnan(x)); }},
      {"isinf", [](double x) { return double(std::isinf(x)); }},
      {"sigmoid", [](double x) { return sigmoid(x); }},
      {"silu", [](double x) { return xf::activate(xf::ActivationKind::silu, x); }},
      {"relu", [](double x) { return relu(x); }},
      {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {"log_sigmoid", [](double x) { return -softplus(-x); }},
      {"softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"mish", [](double x) { return x * std::tanh(softplus(x)); }},
      {"hardsigmoid", [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"hardswish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
  };
  return all;
}

static const llvm::StringMap<Binary> &binaries() {
  static const llvm::StringMap<Binary> all = {
      {"logical_and", [](double x, double y) { return double(x != 0 && y != 0); }},
      {"logical_or", [](double x, double y) { return double(x != 0 || y != 0); }},
      {"logical_xor", [](double x, double y) { return double((x != 0) != (y != 0)); }},
      {"eq", [](double x, double y) { return double(x == y); }},
      {"ne", [](double x, double y) { return double(x != y); }},
      {"lt", [](double x, double y) { return double(x < y); }},
      {"le", [](double x, double y) { return double(x <= y); }},
      {"gt", [](double x, double y) { return double(x > y); }},
      {"ge", [](double x, double y) { return double(x >= y); }},
      {"minimum", [](double x, double y) { return std::min(x, y); }},
      {"maximum", [](double x, double y) { return std::max(x, y); }},
      {"remainder", modulo},
      {"fmod", [](double x, double y) { return std::fmod(x, y); }},
      {"atan2", [](double x, double y) { return std::atan2(x, y); }},
  };
  return all;
}

Meanings ctxc::reference::elementMeanings() {
  static const std::pair<llvm::StringRef, Meaning> all[] = {
      {"add", add},
      {"sub", add},
      {"subtract", add},
      {"rsub", add},
      {"mul", multiply},
      {"multiply", multiply},
      {"div", divide},
      {"divide", divide},
      {"true_divide", divide},
      {"floor_divide", divide},
      {"pow", power},
      {"where", where},
      {"masked_fill", maskedFill},
      {"clamp", clamp},
      {"clamp_min", clamp},
      {"clamp_max", clamp},
      {"polar", polar},
      {"gelu", gelu},
      {"softplus", scaledSoftplus},
      {"elu", elu},
      {"leaky_relu", leakyRelu},
      {"bitwise_not", bitwiseNot},
      {"logical_not", bitwiseNot},
      {"__and__", bitwiseAnd},
      {"__or__", bitwiseOr},
      {"__xor__", bitwiseXor},
      {"bitwise_and", bitwiseAnd},
      {"bitwise_or", bitwiseOr},
      {"bitwise_xor", bitwiseXor},
  };
  static const std::vector<std::pair<llvm::StringRef, Meaning>> whole = [] {
    std::vector<std::pair<llvm::StringRef, Meaning>> whole(std::begin(all), std::end(all));
    for (const auto &function : unaries())
      whole.emplace_back(function.getKey(), unary);
    for (const auto &function : binaries())
      whole.emplace_back(function.getKey(), binary);
    return whole;
  }();
  return whole;
}
