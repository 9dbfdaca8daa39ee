// The facts of functions that are applied entry by entry (FactsOpInterface).
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/Functions.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

double ctxc::xf::activate(ActivationKind kind, double x) { return formulaOf(kind, x); }

namespace {
enum class Shape { Absolute, Bounded, Dip, Logarithm, Positive, Share, ZeroBelow };
} // namespace

/// The columns of Functions.def.
static std::pair<Shape, double> shapeOf(ActivationKind kind) {
  switch (kind) {
#define CTXC_FUNCTION(NAME, SHAPE, LEAST, FORMULA)                                                 \
  case ActivationKind::NAME:                                                                       \
    return {Shape::SHAPE, LEAST};
#include "dialects/XF/Functions.def"
  }
  llvm_unreachable("Functions.def has a row for each kind");
}

/// The interval that a non-decreasing function maps the data's interval to.
static void mapInterval(Facts &facts, const Facts &data, llvm::function_ref<double(double)> f) {
  if (data.floor)
    facts.floor = f(*data.floor);
  if (data.ceiling)
    facts.ceiling = f(*data.ceiling);
  boundByInterval(facts);
}

/// The facts of a function that is zero only at zero, has the minimum `least`, and maps x ≥ 0 into
/// [0, x].
static void setDip(Facts &facts, const Facts &data, double least) {
  facts.floor = data.floor.value_or(-1) >= 0 ? 0.0 : least; // rounded downwards
  if (data.ceiling)
    facts.ceiling = std::max(*data.ceiling, 0.0);
}

/// The facts of |x|: it is zero where x is zero. Where x varies, |x| varies as well, but on an open
/// set it can be equal to x, or to −x.
static void setAbsolute(Facts &facts, const Facts &data) {
  facts.bound = data.bound;
  facts.length = data.length;
  double least = std::max({0.0, data.floor.value_or(0), -data.ceiling.value_or(0)});
  facts.floor = least;
  if (data.floor && data.ceiling)
    facts.ceiling = std::max(std::abs(*data.floor), std::abs(*data.ceiling));
  boundByInterval(facts);
  facts.piecewise = true;
  facts.levels.emplace();
}

Facts ActivationOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0];
  auto f = [&](double x) { return activate(getKind(), x); };
  if (std::optional<double> constant = data.getConstant())
    return Facts::constant(f(*constant), data.why);
  Facts facts = {data.elements, data.vector, std::nullopt, data.why};
  facts.zeroSomewhere = data.zeroSomewhere; // most functions are zero at zero
  facts.free = data.free;
  auto [shape, least] = shapeOf(getKind());
  switch (shape) {
  case Shape::ZeroBelow:
    facts.floor = 0.0;
    facts.zeroSomewhere |= data.bothSigns;
    mapInterval(facts, data, f);
    if (data.floor.value_or(-1) >= 0) { // the data is never negative
      // A relu is the data itself, which another term of a sum may be; a root has a kink where the
      // data touches zero: of a square it is x on one side and −x on the other.
      bool isRoot = getKind() == ActivationKind::sqrt && !(*data.floor > 0);
      if (getKind() == ActivationKind::relu || isRoot) {
        facts.piecewise = true;
        facts.levels.emplace();
      }
      break;
    }
    facts.elements = facts.vector = Zeros::OpenSet;
    facts.why = stringifyActivationKind(getKind()).str() + " is zero on every negative input";
    if (facts.isZero() || data.ceiling.value_or(1) <= 0)
      return Facts::constant(0, facts.why);
    facts.free = false;
    facts.piecewise = true;
    facts.levels = {0.0};
    break;
  case Shape::Share:
    facts = {Zeros::Never, Zeros::Never, 1.0, ""};
    facts.floor = 0.0;
    facts.ceiling = 1.0;
    facts.free = data.free;
    mapInterval(facts, data, f);
    break;
  case Shape::Bounded:
    facts.bound = 1.0;
    mapInterval(facts, data, f);
    break;
  case Shape::Positive:
    facts = {Zeros::Never, Zeros::Never, std::nullopt, ""};
    facts.floor = 0.0;
    facts.free = data.free;
    mapInterval(facts, data, f);
    break;
  case Shape::Dip:
    setDip(facts, data, least);
    break;
  case Shape::Absolute:
    setAbsolute(facts, data);
    break;
  case Shape::Logarithm: // zero at one
    facts = {};
    facts.piecewise = !(data.floor.value_or(-1) > functions::leastPositive);
    if (!facts.piecewise && !data.piecewise)
      facts.elements = facts.vector = Zeros::NullSet;
    facts.why = "the logarithm of one is zero";
    facts.floor = f(0);
    mapInterval(facts, data, f);
    break;
  }
  return facts;
}

Facts SoftcapOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0];
  double cap = getCap().convertToFloat();
  Facts facts = {data.elements, data.vector, cap, data.why};
  facts.zeroSomewhere = data.zeroSomewhere;
  facts.free = data.free;
  mapInterval(facts, data, [&](double x) { return cap * std::tanh(x / cap); });
  return facts;
}

Facts ClampOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  double limit = getLimit().convertToFloat(), least = getAbove() ? -HUGE_VAL : -limit;
  if (facts.bound) { // the bound, as an interval
    facts.floor = std::max(facts.floor.value_or(-*facts.bound), -*facts.bound);
    facts.ceiling = std::min(facts.ceiling.value_or(*facts.bound), *facts.bound);
  }
  if (facts.floor.value_or(-HUGE_VAL) >= least && facts.ceiling.value_or(HUGE_VAL) <= limit) {
    // The data lies within the limits already: it is the data itself, which another term of a sum
    // may be.
    facts.piecewise = true;
    facts.levels.emplace();
    return facts;
  }
  auto f = [&](double x) { return std::min(std::max(x, least), limit); };
  facts.ceiling = f(facts.ceiling.value_or(limit));
  if (facts.floor || !getAbove())
    facts.floor = f(facts.floor.value_or(-limit));
  facts.length.reset();
  facts.bound.reset();
  boundByInterval(facts);
  facts.free = false;
  facts.piecewise = true;
  facts.levels = getAbove() ? std::vector<double>{limit} : std::vector<double>{-limit, limit};
  return facts;
}

Facts LeakyOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  double slope = getSlope().convertToDouble();
  auto f = [&](double x) { return x > 0 ? x : slope * x; };
  facts.bound.reset();
  facts.length.reset();
  mapInterval(facts, operands[0], f);
  if (operands[0].bound)
    facts.bound = *operands[0].bound * std::max(1.0, slope);
  if (slope != 1) { // equal to x, or to c x, on open sets
    facts.piecewise = true;
    facts.levels.emplace();
  }
  return facts;
}

double PowerOp::at(double x) {
  double size = std::abs(x), n = double(getExponent());
  return std::copysign(getRoot() ? n == 3 ? std::cbrt(size) : std::sqrt(size) : std::pow(size, n),
                       x);
}

Facts PowerOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0];
  Facts facts = data;
  facts.length.reset();
  facts.bound.reset();
  mapInterval(facts, data, [&](double x) { return at(x); });
  if (data.bound)
    facts.bound = at(*data.bound);
  // x |x| and roots have a kink at zero; x³ has none.
  bool avoidsZero = data.excludes(0) || data.floor.value_or(-1) > 0;
  if ((getRoot() || getExponent() == 2) && !avoidsZero) {
    facts.piecewise = true;
    facts.levels.emplace();
  }
  return facts;
}

double RoundOp::at(double x) {
  if (x == 0 || !std::isfinite(x))
    return x;
  bool isWide = getNarrow() == NarrowType::bf16;
  int digits = isWide ? 8 : 11, least = isWide ? -126 : -14, exponent = std::ilogb(x);
  double step = std::ldexp(1.0, std::max(exponent, least) - digits + 1);
  double rounded = std::nearbyint(x / step) * step;
  constexpr double largestHalf = 65504;
  return isWide || std::abs(rounded) <= largestHalf ? rounded : std::copysign(HUGE_VAL, x);
}

/// As of a program that does not round, but for what rounded numbers add up to: their sums may
/// vanish on open sets.
Facts RoundOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  double more = 1 + std::ldexp(1.0, getNarrow() == NarrowType::bf16 ? -8 : -11);
  for (std::optional<double> *size : {&facts.bound, &facts.length})
    if (*size)
      *size = **size * more;
  auto widen = [&](std::optional<double> &side, bool isLow) {
    if (side)
      side = *side * ((*side > 0) == isLow ? 2 - more : more);
  };
  widen(facts.floor, true);
  widen(facts.ceiling, false);
  facts.free = false;
  facts.piecewise = true;
  facts.levels.reset();
  return facts;
}
