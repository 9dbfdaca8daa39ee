// Zero and image facts of each op's result (FactsOpInterface).
#include "dialects/XF/XF.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

static Zeros worse(Zeros a, Zeros b) { return std::max(a, b); }
static Zeros better(Zeros a, Zeros b) { return std::min(a, b); }

/// Generic: zero on a null set of weights at most.
static Facts generic() { return {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""}; }

/// Nothing is known, for the reason `why`.
static Facts unknown(StringRef why) {
  Facts facts{Zeros::OpenSet, Zeros::OpenSet, std::nullopt, why.str()};
  facts.piecewise = true;
  return facts;
}

Facts Facts::constant(double number, std::string why) {
  Zeros zeros = number == 0 ? Zeros::OpenSet : Zeros::Never;
  Facts facts{zeros, zeros, std::abs(number), std::move(why)};
  facts.floor = facts.ceiling = number;
  return facts;
}

static bool isStored(Value parameter) { return parameter.getDefiningOp<ParamOp>() != nullptr; }

/// What an op with a stored parameter gives of data that is not zero as the op needs it:
/// either sign, as the parameter has.
static bool takesBothSigns(Value parameter, Zeros dataIsZero) {
  return isStored(parameter) && dataIsZero != Zeros::OpenSet;
}

/// Where an entry is zero, alone or with all others.
static Zeros anyZero(const Facts &f) { return worse(f.elements, f.vector); }

static int64_t lastDim(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}
static bool haveOneShape(Value a, Value b) {
  return cast<ShapedType>(a.getType()).getShape() == cast<ShapedType>(b.getType()).getShape();
}

/// The bound that the interval gives.
static void boundByInterval(Facts &facts) {
  if (!facts.floor || !facts.ceiling)
    return;
  double bound = std::max(std::abs(*facts.floor), std::abs(*facts.ceiling));
  facts.bound = std::min(facts.bound.value_or(bound), bound);
}

Facts ParamOp::inferFacts(ArrayRef<Facts>) {
  Facts facts = generic();
  facts.free = true;
  return facts;
}
Facts SettingOp::inferFacts(ArrayRef<Facts>) { return generic(); }
Facts EmbedOp::inferFacts(ArrayRef<Facts>) { return generic(); }

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Of `a` times `b`, number by number.
static Facts factsOfProduct(const Facts &a, const Facts &b) {
  const std::string &why = a.why.empty() ? b.why : a.why;
  if (a.isZero() || b.isZero())
    return Facts::constant(0, why);
  Facts facts;
  facts.elements = worse(a.elements, b.elements);
  // Two vectors may miss each other's entries, so that the product is zero as a
  // whole where neither is.
  facts.vector = worse(anyZero(a), anyZero(b));
  if (a.bound && b.bound)
    facts.bound = *a.bound * *b.bound;
  facts.zeroSomewhere = a.zeroSomewhere || b.zeroSomewhere;
  if (a.floor && a.ceiling && b.floor && b.ceiling) {
    double ends[] = {*a.floor * *b.floor, *a.floor * *b.ceiling, *a.ceiling * *b.floor,
                     *a.ceiling * *b.ceiling};
    facts.floor = *std::min_element(std::begin(ends), std::end(ends));
    facts.ceiling = *std::max_element(std::begin(ends), std::end(ends));
  } else if ((a.floor.value_or(-1) >= 0 && b.floor.value_or(-1) >= 0) ||
             (a.ceiling.value_or(1) <= 0 && b.ceiling.value_or(1) <= 0)) {
    facts.floor = 0.0;
  } else if ((a.floor.value_or(-1) >= 0 && b.ceiling.value_or(1) <= 0) ||
             (a.ceiling.value_or(1) <= 0 && b.floor.value_or(-1) >= 0)) {
    facts.ceiling = 0.0;
  }
  facts.why = why;
  return facts;
}

// A generic matrix sends a nonzero vector to a vector without zero entries.
Facts LinearOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[1];
  if (operands[0].isZero() || data.isZero())
    return Facts::constant(0, operands[0].isZero() ? operands[0].why : data.why);
  if (!isStored(getWeight()))
    return unknown("its matrix is computed");
  Facts facts = {Zeros::NullSet, worse(Zeros::NullSet, data.vector), std::nullopt, data.why};
  facts.bothSigns = takesBothSigns(getWeight(), data.vector);
  facts.free = data.vector != Zeros::OpenSet;
  return facts;
}

Facts ScaleOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0], &scale = operands[1];
  if (!isStored(getScale())) {
    Facts factor = scale;
    if (double offset = getOffset().convertToDouble()) {
      factor = unknown("its scale is computed, and may be the opposite of the offset");
      if (scale.floor)
        factor.floor = *scale.floor + offset;
      if (scale.ceiling)
        factor.ceiling = *scale.ceiling + offset;
      boundByInterval(factor);
      if (factor.excludes(0))
        factor.elements = factor.vector = Zeros::Never;
      if (factor.isZero())
        factor = Facts::constant(0, "a scale that is zero");
    }
    return factsOfProduct(data, factor);
  }
  if (data.isZero())
    return Facts::constant(0, data.why);
  Facts facts = {worse(Zeros::NullSet, data.elements), worse(Zeros::NullSet, data.vector),
                 std::nullopt, data.why};
  facts.bothSigns = takesBothSigns(getScale(), anyZero(data));
  facts.zeroSomewhere = data.zeroSomewhere;
  facts.free = haveOneShape(getData(), getScale()) && anyZero(data) != Zeros::OpenSet;
  return facts;
}

Facts MulOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &a = operands[0], &b = operands[1];
  Facts facts = factsOfProduct(a, b);
  if (getLhs() == getRhs() && facts.floor.value_or(-1) < 0)
    facts.floor = 0.0;
  facts.free = (a.free && anyZero(b) != Zeros::OpenSet) ||
               (b.free && anyZero(a) != Zeros::OpenSet && haveOneShape(getLhs(), getRhs()));
  return facts;
}

Facts DivOp::inferFacts(ArrayRef<Facts> operands) {
  if (operands[0].isZero())
    return Facts::constant(0, operands[0].why);
  return {operands[0].elements, operands[0].vector, std::nullopt, operands[0].why};
}

Facts TimesOp::inferFacts(ArrayRef<Facts> operands) {
  if (getFactor().isZero())
    return Facts::constant(0, "a factor of zero");
  Facts facts = operands[0];
  double factor = getFactor().convertToFloat();
  if (facts.bound)
    facts.bound = *facts.bound * std::abs(factor);
  if (facts.length)
    facts.length = *facts.length * std::abs(factor);
  if (factor < 0)
    std::swap(facts.floor, facts.ceiling);
  for (std::optional<double> *side : {&facts.floor, &facts.ceiling})
    if (*side)
      *side = **side * factor;
  return facts;
}

SmallVector<SumTerm> TimesOp::getSumTerms() { return {{0, getFactor().convertToFloat()}}; }

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// A sum vanishes on a null set unless both terms vanish on an open one, where the two have
/// nothing to do with each other (see BlockFacts.h).
static Facts factsOfSum(const Facts &a, const Facts &b) {
  Facts facts;
  facts.elements =
      worse(Zeros::NullSet, worse(better(a.elements, anyZero(b)), better(anyZero(a), b.elements)));
  facts.vector = worse(Zeros::NullSet, better(a.vector, b.vector));
  if (a.bound && b.bound)
    facts.bound = *a.bound + *b.bound;
  if (a.floor && b.floor)
    facts.floor = *a.floor + *b.floor;
  if (a.ceiling && b.ceiling)
    facts.ceiling = *a.ceiling + *b.ceiling;
  boundByInterval(facts);
  facts.why = a.why.empty() ? b.why : a.why;
  return facts;
}

Facts AddOp::inferFacts(ArrayRef<Facts> operands) { return factsOfSum(operands[0], operands[1]); }
SmallVector<SumTerm> AddOp::getSumTerms() { return {{0, 1}, {1, 1}}; }

Facts SubOp::inferFacts(ArrayRef<Facts> operands) {
  Facts opposite = operands[1];
  std::swap(opposite.floor, opposite.ceiling);
  for (std::optional<double> *side : {&opposite.floor, &opposite.ceiling})
    if (*side)
      *side = -**side;
  return factsOfSum(operands[0], opposite);
}
SmallVector<SumTerm> SubOp::getSumTerms() { return {{0, 1}, {1, -1}}; }

Facts BiasOp::inferFacts(ArrayRef<Facts> operands) {
  if (!isStored(getBias()))
    return haveOneShape(getData(), getBias()) ? factsOfSum(operands[0], operands[1])
                                              : unknown("its bias is computed");
  Facts facts = generic();
  facts.bothSigns = takesBothSigns(getBias(), Zeros::Never);
  facts.free = haveOneShape(getData(), getBias());
  return facts;
}
SmallVector<SumTerm> BiasOp::getSumTerms() {
  if (haveOneShape(getData(), getBias()))
    return {{0, 1}, {1, 1}};
  return {};
}

//===----------------------------------------------------------------------===//
// Along the last dimension
//===----------------------------------------------------------------------===//

Facts NormalizeOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0];
  int64_t d = lastDim(getData());
  bool isExact = getEps().isZero();
  bool isOfZero = data.isZero() || (getKind() == NormKind::layer && d == 1);
  if (isOfZero && isExact)
    return unknown("zero is divided by zero");
  if (isOfZero)
    return Facts::constant(0, data.isZero() ? data.why : "a layer norm of one entry is zero");
  if (getKind() == NormKind::sum && d == 1 && isExact && data.vector != Zeros::OpenSet)
    return Facts::constant(1, "the share of one entry is one");
  Facts facts = {data.elements, data.vector, std::nullopt, data.why};
  facts.bothSigns = data.bothSigns;
  if (getKind() == NormKind::sum) { // bounded where no entry is negative
    if (data.floor && *data.floor >= 0) {
      facts.bound = facts.ceiling = 1.0;
      facts.floor = 0.0;
    }
    return facts;
  }
  double n = cast<RankedTensorType>(getType()).getNumElements();
  facts.bound = getKind() == NormKind::l2 ? 1.0 : std::sqrt(double(d));
  facts.length = getKind() == NormKind::l2 ? std::sqrt(n / d) : std::sqrt(n);
  if (d == (getKind() == NormKind::layer ? 2 : 1)) { // a sign, and with ε = 0 nothing else
    facts.piecewise = isExact;
    bool isKnown = d == 1 && isExact && anyZero(data) == Zeros::Never;
    for (double sign : {1.0, -1.0})
      if (isKnown && (sign > 0 ? data.floor.value_or(-1) >= 0 : data.ceiling.value_or(1) <= 0))
        return Facts::constant(sign, "the sign of one entry");
  }
  if (getKind() == NormKind::layer) { // a constant vector has image zero
    facts.elements = worse(Zeros::NullSet, facts.elements);
    facts.vector = worse(Zeros::NullSet, facts.vector);
    if (data.piecewise && !data.free) {
      facts.elements = facts.vector = Zeros::OpenSet;
      if (facts.why.empty())
        facts.why = "its entries may all be equal on an open set";
    }
  }
  return facts;
}

Facts SoftmaxOp::inferFacts(ArrayRef<Facts>) {
  if (lastDim(getData()) == 1)
    return Facts::constant(1, "a softmax of one entry is one");
  Facts facts = {Zeros::Never, Zeros::Never, 1.0, ""};
  facts.floor = 0.0;
  facts.ceiling = 1.0;
  return facts;
}

//===----------------------------------------------------------------------===//
// Entry by entry
//===----------------------------------------------------------------------===//

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double ctxc::xf::activate(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::gelu:
    return x * std::erfc(-x * M_SQRT1_2) / 2;
  case ActivationKind::gelu_tanh:
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case ActivationKind::silu:
    return x * sigmoid(x);
  case ActivationKind::relu:
    return std::max(x, 0.0);
  case ActivationKind::relu2:
    return x > 0 ? x * x : 0;
  case ActivationKind::sigmoid:
    return sigmoid(x);
  case ActivationKind::tanh:
    return std::tanh(x);
  case ActivationKind::quick_gelu:
    return x * sigmoid(1.702 * x);
  case ActivationKind::exp:
    return std::exp(x);
  case ActivationKind::softplus:
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  llvm_unreachable("all kinds are above");
}

/// What a function that never falls makes of the data's interval.
static void mapInterval(Facts &facts, const Facts &data, llvm::function_ref<double(double)> f) {
  if (data.floor)
    facts.floor = f(*data.floor);
  if (data.ceiling)
    facts.ceiling = f(*data.ceiling);
  boundByInterval(facts);
}

/// Zero at zero only; of data from zero on, between zero and the data.
static void setDip(Facts &facts, const Facts &data, double least) {
  facts.floor = data.floor.value_or(-1) >= 0 ? 0.0 : least; // rounded downwards
  if (data.ceiling)
    facts.ceiling = std::max(*data.ceiling, 0.0);
}

Facts ActivationOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0];
  auto f = [&](double x) { return activate(getKind(), x); };
  if (std::optional<double> constant = data.getConstant())
    return Facts::constant(f(*constant), data.why);
  Facts facts = {data.elements, data.vector, std::nullopt, data.why};
  facts.zeroSomewhere = data.zeroSomewhere; // zero at zero, but for the last cases
  facts.free = data.free;
  switch (getKind()) {
  case ActivationKind::relu:
  case ActivationKind::relu2:
    facts.floor = 0.0;
    facts.zeroSomewhere |= data.bothSigns;
    mapInterval(facts, data, f);
    if (data.floor.value_or(-1) >= 0)
      break; // never negative before it
    facts.elements = facts.vector = Zeros::OpenSet;
    facts.why = stringifyActivationKind(getKind()).str() + " is zero on every negative input";
    if (facts.isZero() || data.ceiling.value_or(1) <= 0)
      return Facts::constant(0, facts.why);
    facts.free = false;
    facts.piecewise = true;
    facts.levels = {0.0};
    break;
  case ActivationKind::sigmoid:
    facts = {Zeros::Never, Zeros::Never, 1.0, ""};
    facts.floor = 0.0;
    facts.ceiling = 1.0;
    facts.free = data.free;
    mapInterval(facts, data, f);
    break;
  case ActivationKind::tanh:
    facts.bound = 1.0;
    mapInterval(facts, data, f);
    break;
  case ActivationKind::exp:
  case ActivationKind::softplus:
    facts = {Zeros::Never, Zeros::Never, std::nullopt, ""};
    facts.floor = 0.0;
    facts.free = data.free;
    mapInterval(facts, data, f);
    break;
  case ActivationKind::gelu:
  case ActivationKind::gelu_tanh:
    setDip(facts, data, -0.171);
    break;
  case ActivationKind::silu:
    setDip(facts, data, -0.279);
    break;
  case ActivationKind::quick_gelu:
    setDip(facts, data, -0.164);
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
  if (facts.bound) { // as an interval
    facts.floor = std::max(facts.floor.value_or(-*facts.bound), -*facts.bound);
    facts.ceiling = std::min(facts.ceiling.value_or(*facts.bound), *facts.bound);
  }
  if (facts.floor.value_or(-HUGE_VAL) >= least && facts.ceiling.value_or(HUGE_VAL) <= limit)
    return operands[0]; // inside already
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

//===----------------------------------------------------------------------===//
// Shapes, positions, other tokens
//===----------------------------------------------------------------------===//

Facts BroadcastOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.length.reset();
  facts.free = false; // one number for several entries
  return facts;
}

Facts ReshapeOp::inferFacts(ArrayRef<Facts> operands) { return operands[0]; }
SmallVector<SumTerm> ReshapeOp::getSumTerms() { return {{0, 1}}; }

Facts SliceOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.vector = anyZero(facts); // a part may vanish where the whole does not
  return facts;
}

Facts ConcatOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands.front();
  facts.length.reset();
  facts.bothSigns = facts.zeroSomewhere = facts.free = false; // not looked at
  for (const Facts &f : operands.drop_front()) {
    facts.elements = worse(anyZero(facts), anyZero(f)); // one part may vanish alone
    facts.vector = better(facts.vector, f.vector);
    auto outer = [](const std::optional<double> &a, const std::optional<double> &b, auto &&pick) {
      return a && b ? std::optional<double>(pick(*a, *b)) : std::nullopt;
    };
    auto larger = [](double a, double b) { return std::max(a, b); };
    facts.bound = outer(facts.bound, f.bound, larger);
    facts.ceiling = outer(facts.ceiling, f.ceiling, larger);
    facts.floor = outer(facts.floor, f.floor, [](double a, double b) { return std::min(a, b); });
    if (facts.why.empty())
      facts.why = f.why;
  }
  return facts;
}

Facts RotaryOp::inferFacts(ArrayRef<Facts> operands) {
  if (operands[0].isZero())
    return operands[0];
  Facts facts = operands[0];
  facts.elements = worse(Zeros::NullSet, facts.elements); // a pair of zeros stays zero
  facts.bound.reset();
  facts.floor.reset();
  facts.ceiling.reset();
  facts.bothSigns = facts.zeroSomewhere = facts.free = false; // not looked at
  return facts;
}

Facts AttentionOp::inferFacts(ArrayRef<Facts> operands) {
  if (operands[2].isZero())
    return Facts::constant(0, operands[2].why);
  const Facts &value = operands[2];
  Facts facts{worse(Zeros::NullSet, value.elements), worse(Zeros::NullSet, value.vector),
              value.bound, value.why};
  if (!getSinks()) { // a mean of values
    facts.floor = value.floor;
    facts.ceiling = value.ceiling;
  }
  return facts;
}
