// Functions of entries: each result of the entries in the same place.
#include "Calls.h"
#include "dialects/Graph/AtenOps.h"
#include "dialects/XF/Functions.h"
#include <cmath>
#include <complex>

using namespace ctxc;
using namespace ctxc::reference;

template <typename Function> static Array mapped(const Array &x, Function f) {
  Array result(x.isComplex() ? Kind::Complex : Kind::Float, x.shape());
  double *to = result.data();
  eachPlace(x, [&](int64_t place) { *to++ = f(x.at(place)); });
  return result;
}

Results meanings::unary(Call &c) {
  Array x = c.tensor("self");
  if (x.isComplex()) {
    c.fail("has complex numbers, for which it has no meaning here");
    return {};
  }
  return {mapped(x, graph::atenOp(c.name())->function)};
}

/// Entries of two arrays in the shape that they have together, and f of them.
template <typename Function>
static Results ofPairs(Call &c, const Array &a, const Array &b, Function f) {
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

Results meanings::binary(Call &c) {
  // Of two tensors, max and min have the names of what goes along an axis.
  llvm::StringRef name = c.name() == "max" ? "maximum" : c.name() == "min" ? "minimum" : c.name();
  return ofPairs(c, c.tensorOrNumber("self"), c.tensorOrNumber("other"), graph::atenOp(name)->ofTwo);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

using Complex = std::complex<double>;

Results meanings::add(Call &c) {
  double sign = c.name() == "add" ? 1 : -1, alpha = sign * c.number("alpha", 1);
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  if (c.name() == "rsub")
    std::swap(a, b);
  if (a.isComplex() || b.isComplex())
    return ofPairs(c, a, b, [=](Complex x, Complex y) { return x + alpha * y; });
  return ofPairs(c, a, b, [=](double x, double y) { return x + alpha * y; });
}

Results meanings::multiply(Call &c) {
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  if (a.isComplex() || b.isComplex())
    return ofPairs(c, a, b, [](Complex x, Complex y) { return x * y; });
  return ofPairs(c, a, b, [](double x, double y) { return x * y; });
}

Results meanings::divide(Call &c) {
  Array a = c.tensorOrNumber("self"), b = c.tensorOrNumber("other");
  llvm::StringRef mode = c.name() == "floor_divide" ? "floor" : c.text("rounding_mode", "");
  if (mode == "floor")
    return ofPairs(c, a, b, [](double x, double y) { return std::floor(x / y); });
  if (mode == "trunc")
    return ofPairs(c, a, b, [](double x, double y) { return std::trunc(x / y); });
  return ofPairs(c, a, b, [](double x, double y) { return x / y; });
}

Results meanings::power(Call &c) {
  return ofPairs(c, c.tensorOrNumber("self"), c.tensorOrNumber("exponent"),
                [](double x, double y) { return std::pow(x, y); });
}

Results meanings::where(Call &c) {
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

Results meanings::maskedFill(Call &c) {
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

Results meanings::clamp(Call &c) {
  Results result{c.tensor("self")};
  for (llvm::StringRef bound : {"min", "max"})
    if (c.has(bound) && c.failure().empty())
      result = ofPairs(c, result.front(), c.tensorOrNumber(bound), [&](double x, double y) {
        return bound == "min" ? std::max(x, y) : std::min(x, y);
      });
  return result;
}

Results meanings::polar(Call &c) {
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

using xf::functions::softplus;

Results meanings::gelu(Call &c) {
  auto kind = c.text("approximate", "none") == "tanh" ? xf::ActivationKind::gelu_tanh
                                                      : xf::ActivationKind::gelu;
  return {mapped(c.tensor("self"), [=](double x) { return xf::activate(kind, x); })};
}

Results meanings::scaledSoftplus(Call &c) {
  double beta = c.number("beta", 1), threshold = c.number("threshold", 20);
  return {mapped(c.tensor("self"),
                 [=](double x) { return beta * x > threshold ? x : softplus(beta * x) / beta; })};
}

Results meanings::elu(Call &c) {
  double alpha = c.number("alpha", 1), scale = c.number("scale", 1);
  return {mapped(c.tensor("self"),
                 [=](double x) { return scale * (x > 0 ? x : alpha * std::expm1(x)); })};
}

Results meanings::leakyRelu(Call &c) {
  double slope = c.number("negative_slope", 0.01);
  return {mapped(c.tensor("self"), [=](double x) { return x > 0 ? x : slope * x; })};
}

Results meanings::bitwiseNot(Call &c) {
  Array x = c.tensor("self");
  bool isFlag = x.kind() == Kind::Bool || c.name() == "logical_not";
  return {mapped(x, [=](double number) { return isFlag ? double(number == 0) : -number - 1; })};
}

/// Bits of integers below 2⁵³, or flags.
template <typename Function> static Results bits(Call &c, Function f) {
  return ofPairs(c, c.tensorOrNumber("self"), c.tensorOrNumber("other"),
                [&](double x, double y) { return double(f(int64_t(x), int64_t(y))); });
}
Results meanings::bitwiseAnd(Call &c) { return bits(c, std::bit_and<int64_t>()); }
Results meanings::bitwiseOr(Call &c) { return bits(c, std::bit_or<int64_t>()); }
Results meanings::bitwiseXor(Call &c) { return bits(c, std::bit_xor<int64_t>()); }
