#include "dialects/XF/EntryImage.h"
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/Functions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

static constexpr double infinite = HUGE_VAL;
/// So near to zero a function may be rounded to its value there, or to its slope times its data.
static constexpr double nearZero = 0x1p-14;

namespace {

struct Interval {
  double low, high;
};

/// The value and the derivative of a function on an interval.
struct Jet {
  Interval f, d;
};

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
Interval operator+(Interval a, Interval b) { return {a.low + b.low, a.high + b.high}; }
Interval operator-(Interval a) { return {-a.high, -a.low}; }
Interval operator-(Interval a, Interval b) { return a + -b; }
/// Zero times what grows without bound is zero at each point.
double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }
Interval operator*(Interval a, Interval b) {
  double ends[] = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                   product(a.high, b.high)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}
const Interval everything{-infinite, infinite};
Interval operator/(Interval a, Interval b) {
  if (b.low <= 0 && b.high >= 0)
    return everything;
  return a * Interval{1 / b.high, 1 / b.low};
}
bool holds(Interval a, double x) { return a.low <= x && x <= a.high; }
bool isPoint(Interval a) { return a.low == a.high; }

/// Of a function that only grows.
Interval growing(Interval x, llvm::function_ref<double(double)> f) { return {f(x.low), f(x.high)}; }
/// Of a function with its extreme values at `places` and at the ends.
Interval between(Interval x, llvm::function_ref<double(double)> f, ArrayRef<double> places) {
  Interval result = hull({f(x.low), f(x.low)}, {f(x.high), f(x.high)});
  for (double place : places)
    if (holds(x, place))
      result = hull(result, {f(place), f(place)});
  return result;
}

using functions::sigmoid;
double silu(double x) { return x == -infinite ? 0 : x * sigmoid(x); }
double siluSlope(double x) {
  double s = sigmoid(x);
  return std::isinf(x) ? double(x > 0) : s + x * s * (1 - s);
}
double gelu(double x) { return x == -infinite ? 0 : x * std::erfc(-x * M_SQRT1_2) / 2; }
double geluSlope(double x) {
  double bell = std::isinf(x) ? 0 : x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  return std::erfc(-x * M_SQRT1_2) / 2 + bell;
}

/// Where silu and its derivative have their extreme values, and gelu; a bit wider than they are.
constexpr double siluDip = -1.2784645427610738, siluBend = 2.3993572805154194,
                 geluDip = -0.7517915246935645;

Interval times(Interval x, double c) { return x * Interval{c, c}; }

Jet siluOf(Interval x) {
  return {between(x, silu, {siluDip}), between(x, siluSlope, {-siluBend, siluBend})};
}

Jet tanhOf(Interval x) {
  auto f = [](double y) { return std::tanh(y); };
  auto slope = [](double y) { return 1 - std::tanh(y) * std::tanh(y); };
  return {growing(x, f), between(x, slope, {0.0})};
}

/// A function of x that is known to be steeper or less where x is larger than `kink`.
Jet kinked(Interval x, double kink, double below, double above,
           llvm::function_ref<double(double)> f) {
  Interval slope = x.high <= kink  ? Interval{below, below}
                   : x.low >= kink ? Interval{above, above}
                                   : hull({below, below}, {above, above});
  return {below < 0 ? between(x, f, {kink}) : growing(x, f), slope};
}

Jet activationOf(ActivationKind kind, Interval x) {
  auto f = [&](double y) { return activate(kind, y); };
  switch (kind) {
  case ActivationKind::relu:
    return kinked(x, 0, 0, 1, f);
  case ActivationKind::relu2:
    return {growing(x, f), growing(x, [](double y) { return 2 * std::max(y, 0.0); })};
  case ActivationKind::abs:
    return kinked(x, 0, -1, 1, f);
  case ActivationKind::exp:
    return {growing(x, f), growing(x, f)};
  case ActivationKind::log:
    return {growing(x, f), x.low > 0 ? Interval{1 / x.high, 1 / x.low} : Interval{0, infinite}};
  case ActivationKind::softplus:
    return {
        growing(x,
                [](double y) { return y == infinite ? y : activate(ActivationKind::softplus, y); }),
        growing(x, [](double y) { return sigmoid(y); })};
  case ActivationKind::sigmoid:
    return {growing(x, f), between(x, [](double y) { return sigmoid(y) * sigmoid(-y); }, {0.0})};
  case ActivationKind::tanh:
    return tanhOf(x);
  case ActivationKind::sqrt: {
    double low = std::sqrt(std::max(x.low, 0.0)), high = std::sqrt(std::max(x.high, 0.0));
    Interval slope = x.high <= 0 ? Interval{0, 0}
                     : x.low > 0 ? Interval{0.5 / high, 0.5 / low}
                                 : Interval{0, infinite};
    return {{low, high}, slope};
  }
  case ActivationKind::silu:
    return siluOf(x);
  case ActivationKind::quick_gelu: {
    Jet inner = siluOf(times(x, 1.702));
    return {times(inner.f, 1 / 1.702), inner.d};
  }
  case ActivationKind::gelu:
    return {between(x, gelu, {geluDip}), between(x, geluSlope, {-M_SQRT2, M_SQRT2})};
  case ActivationKind::gelu_tanh: {
    const double c = std::sqrt(2 / M_PI);
    auto inner = [=](double y) { return c * (y + 0.044715 * y * y * y); };
    Interval slope =
        Interval{c, c} *
        (Interval{1, 1} + times(between(x, [](double y) { return y * y; }, {0.0}), 3 * 0.044715));
    Jet t = tanhOf(growing(x, inner));
    Interval half = times(x, 0.5), more = Interval{1, 1} + t.f;
    return {half * more, times(more, 0.5) + half * (t.d * slope)};
  }
  }
  llvm_unreachable("all kinds are above");
}

/// The ops that make a value of another one, in order.
class EntryFunction {
public:
  using FactsOf = llvm::function_ref<const Facts &(Value)>;
  static constexpr size_t mostOps = 48;
  static std::optional<EntryFunction> of(Value value, FactsOf facts);
  /// Of an op with one operand, which is the root.
  explicit EntryFunction(Operation *op)
      : value(op->getResult(0)), root(op->getOperand(0)), steps{{}, Step{op, 0, {0}}} {}
  /// Of all values that the root takes by its facts, rounded outwards.
  Interval image(const Facts &ofRoot) const;
  double at(double x) const { return evaluate({x, x}).f.low; }
  /// What float32 makes of it.
  double rounded(double x) const { return evaluate({x, x}, steps.size() - 1, true).f.low; }
  /// Adds what it is rounded to where the root is large, or nearly zero.
  void addTails(const Facts &ofRoot, Saturation &tails) const;
  /// Whether it comes close to `limit`; near zero, where it may only pass, whether it is rounded to
  /// that.
  bool comesTo(double limit, const Facts &ofRoot) const;
  Value getRoot() const { return root; }

private:
  EntryFunction() = default;
  /// A constant, or made by an op of earlier steps; step 0 is the root.
  struct Step {
    Operation *op = nullptr;
    double constant = 0;
    SmallVector<unsigned, 2> operands = {};
  };

  void collect(Value from, FactsOf facts);
  unsigned add(Value made, Step step) {
    steps.push_back(std::move(step));
    return places[made] = steps.size() - 1;
  }
  Jet evaluate(Interval x) const { return evaluate(x, steps.size() - 1); }
  Jet evaluate(Interval x, unsigned last, bool isRounded = false) const;
  Jet evaluate(unsigned step, ArrayRef<Jet> operands, Interval x) const;
  /// `known`: values between its ends are taken elsewhere, so that segments with such values alone
  /// need no halving; it grows.
  Interval onSegment(Interval x, int depth, int &budget, Interval &known) const;

  Value value, root;
  std::vector<Step> steps{1};
  llvm::DenseMap<Value, unsigned> places; ///< of values among the steps
};

} // namespace

static bool isByEntry(Operation *op) {
  return isa_and_nonnull<AddOp, SubOp, MulOp, DivOp, TimesOp, ActivationOp, SoftcapOp, ClampOp,
                         LeakyOp, PowerOp>(op);
}

/// The earliest value of which alone, beside constants, `value` is a function; null if there is
/// none.
static Value findRoot(Value value, EntryFunction::FactsOf facts) {
  auto isLater = [](Value a, Value b) {
    Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
    return x && (!y || y->isBeforeInBlock(x));
  };
  Value root;
  llvm::SmallSetVector<Value, 8> open;
  open.insert(value);
  for (size_t count = 0; count < EntryFunction::mostOps && !open.empty(); ++count) {
    if (open.size() == 1 && open[0] != value)
      root = open[0];
    Value last = *std::min_element(open.begin(), open.end(), isLater);
    Operation *op = last.getDefiningOp();
    if (!isByEntry(op) || last.getType() != value.getType())
      break;
    open.remove(last);
    for (Value operand : op->getOperands())
      if (!facts(operand).getConstant())
        open.insert(operand);
  }
  return root && root.getType() == value.getType() ? root : Value();
}

void EntryFunction::collect(Value from, FactsOf facts) {
  if (places.count(from))
    return;
  if (from != value)
    if (std::optional<double> constant = facts(from).getConstant()) {
      add(from, {nullptr, *constant});
      return;
    }
  Step step{from.getDefiningOp()};
  for (Value operand : step.op->getOperands()) {
    collect(operand, facts);
    step.operands.push_back(places.lookup(operand));
  }
  add(from, std::move(step));
}

std::optional<EntryFunction> EntryFunction::of(Value value, FactsOf facts) {
  EntryFunction function;
  function.value = value;
  function.root = findRoot(value, facts);
  if (!function.root)
    return std::nullopt;
  function.places[function.root] = 0;
  function.collect(value, facts);
  return function;
}

Jet EntryFunction::evaluate(unsigned step, ArrayRef<Jet> a, Interval x) const {
  auto chain = [&](Jet outer) { return Jet{outer.f, outer.d * a[0].d}; };
  return llvm::TypeSwitch<Operation *, Jet>(steps[step].op)
      .Case<AddOp>([&](auto) { return Jet{a[0].f + a[1].f, a[0].d + a[1].d}; })
      .Case<SubOp>([&](auto) { return Jet{a[0].f - a[1].f, a[0].d - a[1].d}; })
      .Case<MulOp>([&](auto mul) {
        if (mul.getLhs() == mul.getRhs())
          return Jet{between(a[0].f, [](double y) { return y * y; }, {0.0}),
                     times(a[0].f * a[0].d, 2)};
        return Jet{a[0].f * a[1].f, a[0].f * a[1].d + a[0].d * a[1].f};
      })
      .Case<DivOp>([&](auto) -> Jet {
        if (isPoint(x) && isPoint(a[1].f) && a[1].f.low == 0) // a zero counts as 1
          return a[0];
        Jet quotient{a[0].f / a[1].f, (a[0].d * a[1].f - a[0].f * a[1].d) / (a[1].f * a[1].f)};
        // (n + ∫ n') / (m + ∫ m') lies between n / m at an end and the values of n' / m'.
        bool isAbove = a[1].f.low > 0, grows = a[1].d.low > 0, falls = a[1].d.high < 0;
        double end = grows ? x.low : x.high;
        if (isAbove && (grows || falls) && !isPoint(x) && std::isfinite(end)) {
          Interval other = hull(evaluate({end, end}, step).f, a[0].d / a[1].d);
          quotient.f = {std::max(quotient.f.low, other.low), std::min(quotient.f.high, other.high)};
        }
        return quotient;
      })
      .Case<TimesOp>([&](auto op) {
        double c = op.getFactor().convertToFloat();
        return Jet{times(a[0].f, c), times(a[0].d, c)};
      })
      .Case<ActivationOp>([&](auto op) { return chain(activationOf(op.getKind(), a[0].f)); })
      .Case<SoftcapOp>([&](auto op) {
        double c = op.getCap().convertToFloat();
        Jet inner = tanhOf(times(a[0].f, 1 / c));
        return chain({times(inner.f, c), inner.d});
      })
      .Case<ClampOp>([&](auto op) {
        double high = op.getLimit().convertToFloat(), low = op.getAbove() ? -infinite : -high;
        Interval f = growing(a[0].f, [=](double y) { return std::min(std::max(y, low), high); });
        bool isOutside = a[0].f.low >= high || a[0].f.high <= low;
        bool isInside = a[0].f.low >= low && a[0].f.high <= high;
        return chain({f, Interval{isInside ? 1.0 : 0.0, isOutside ? 0.0 : 1.0}});
      })
      .Case<LeakyOp>([&](auto op) {
        double c = op.getSlope().convertToFloat();
        return chain(kinked(a[0].f, 0, c, 1, [=](double y) { return y > 0 ? y : c * y; }));
      })
      .Case<PowerOp>([&](auto op) {
        double n = op.getRoot() ? 1 / double(op.getExponent()) : double(op.getExponent());
        auto slope = [=](double y) {
          return y == 0 ? (n < 1 ? infinite : 0.0) : n * std::pow(std::abs(y), n - 1);
        };
        return chain(
            {growing(a[0].f, [&](double y) { return op.at(y); }), between(a[0].f, slope, {0.0})});
      })
      .Default([](auto) { return Jet{everything, everything}; });
}

Jet EntryFunction::evaluate(Interval x, unsigned last, bool isRounded) const {
  SmallVector<Jet, mostOps + 2> jets{{x, {1, 1}}};
  for (unsigned i = 1; i <= last; ++i) {
    const Step &step = steps[i];
    Jet jet{{step.constant, step.constant}, {0, 0}};
    if (step.op) {
      SmallVector<Jet, 2> operands;
      for (unsigned operand : step.operands)
        operands.push_back(jets[operand]);
      jet = evaluate(i, operands, x);
      for (double *end : {&jet.f.low, &jet.f.high, &jet.d.low, &jet.d.high})
        if (std::isnan(*end))
          *end = end == &jet.f.low || end == &jet.d.low ? -infinite : infinite;
      if (isRounded)
        jet.f = {float(jet.f.low), float(jet.f.high)};
    }
    jets.push_back(jet);
  }
  return jets[last];
}

/// The image of a segment: between the ends where the function only grows, or only falls.
Interval EntryFunction::onSegment(Interval x, int depth, int &budget, Interval &known) const {
  Jet all = evaluate(x);
  auto at = [&](double point) {
    Interval f = evaluate({point, point}).f;
    known = {std::min(known.low, f.high), std::max(known.high, f.low)};
    return f;
  };
  bool grows = all.d.low >= 0, falls = all.d.high <= 0;
  if (grows || falls) {
    Interval ends = all.f;
    if (grows && falls) // it is a constant
      return at(std::isfinite(x.low) ? x.low : x.high);
    if (std::isfinite(x.low))
      (grows ? ends.low : ends.high) = grows ? at(x.low).low : at(x.low).high;
    if (std::isfinite(x.high))
      (grows ? ends.high : ends.low) = grows ? at(x.high).high : at(x.high).low;
    return ends;
  }
  bool isFinite = std::isfinite(x.low) && std::isfinite(x.high);
  if (!isFinite || depth == 0 || --budget < 0)
    return all.f;
  // Near an extreme value the slope is small, and the mean value theorem says more.
  double middle = x.low + (x.high - x.low) / 2;
  Interval mean = at(middle) + all.d * (x - Interval{middle, middle});
  Interval f{std::max(all.f.low, mean.low), std::min(all.f.high, mean.high)};
  constexpr double slack = 1e-9;
  if (known.low - slack * std::abs(known.low) <= f.low &&
      f.high <= known.high + slack * std::abs(known.high))
    return f;
  return hull(onSegment({x.low, middle}, depth - 1, budget, known),
              onSegment({middle, x.high}, depth - 1, budget, known));
}

Interval EntryFunction::image(const Facts &ofRoot) const {
  Interval of{ofRoot.floor.value_or(ofRoot.bound ? -*ofRoot.bound : -infinite),
              ofRoot.ceiling.value_or(ofRoot.bound ? *ofRoot.bound : infinite)};
  std::optional<Interval> all;
  int budget = 4000;
  Interval known{infinite, -infinite};
  double cuts[] = {-infinite, -1e6, -1e3, -32, -8, -2, 0, 2, 8, 32, 1e3, 1e6, infinite};
  for (size_t i = 0; i + 1 < std::size(cuts); ++i) {
    Interval x{std::max(cuts[i], of.low), std::min(cuts[i + 1], of.high)};
    if (x.low > x.high || x.low == infinite || x.high == -infinite)
      continue;
    Interval found = onSegment(x, 30, budget, known);
    all = all ? hull(*all, found) : found;
  }
  if (!all)
    return everything;
  constexpr double rounding = 1e-6;
  return {all->low - rounding * std::abs(all->low) - 1e-12,
          all->high + rounding * std::abs(all->high) + 1e-12};
}

void ctxc::xf::tightenImage(Operation *op, Facts &facts,
                            llvm::function_ref<const Facts &(Value)> of) {
  auto isConstant = [&](Value operand) { return of(operand).getConstant().has_value(); };
  if (!isa<AddOp, SubOp, MulOp, DivOp>(op) || llvm::any_of(op->getOperands(), isConstant))
    return;
  std::optional<EntryFunction> function = EntryFunction::of(op->getResult(0), of);
  if (!function)
    return;
  Interval image = function->image(of(function->getRoot()));
  if (std::isfinite(image.low))
    facts.floor = std::max(facts.floor.value_or(image.low), image.low);
  if (std::isfinite(image.high))
    facts.ceiling = std::min(facts.ceiling.value_or(image.high), image.high);
  boundByInterval(facts);
}

void EntryFunction::addTails(const Facts &ofRoot, Saturation &tails) const {
  // From here on float32 rounds: gelu_tanh to 0 below −5, exp to 0 below −103.
  constexpr double first = 5;
  const double bound = ofRoot.bound.value_or(infinite),
               low = std::max(ofRoot.floor.value_or(-infinite), -bound),
               high = std::min(ofRoot.ceiling.value_or(infinite), bound);
  for (double sign : {-1.0, 1.0}) {
    const double least = sign > 0 ? low : -high, most = sign > 0 ? high : -low;
    // Exponentials are flat soon, and quotients where float32 ends; tanh is its data near zero.
    for (auto [near, far] : {std::pair(nearZero, 2 * nearZero), {50.0, 60.0}, {1e30, 2e30}}) {
      const bool isNear = near == nearZero;
      if (isNear ? least > near || most < far : most <= first)
        continue;
      auto value = [&](double z) { return isNear ? rounded(z) : at(z); };
      double x = sign * near, y = sign * far, a = value(x), b = value(y), slope = float(a / x);
      auto isKnown = [&](const Followed &other) {
        return other.value == root && other.factor == slope;
      };
      if (float(a) == float(b) && std::isfinite(float(a)))
        tails.limits.push_back(a);
      else if (a != 0 && slope == float(b / y) && std::isfinite(float(a)) &&
               llvm::none_of(tails.followed, isKnown))
        tails.followed.push_back({root, slope});
    }
  }
}

bool EntryFunction::comesTo(double limit, const Facts &ofRoot) const {
  auto isNear = [&](double x) {
    double y =
        at(std::clamp(x, ofRoot.floor.value_or(-infinite), ofRoot.ceiling.value_or(infinite)));
    return !(std::abs(y - limit) > 1e-6 * std::max(1.0, std::abs(limit)));
  };
  auto isRounded = [&](double x) {
    return rounded(x) == float(limit) && rounded(2 * x) == float(limit);
  };
  constexpr double first = 0.5, last = 1e4, step = 1.2;
  for (double x = first; x < last; x *= step)
    if (isNear(x) || isNear(-x))
      return true;
  if (isRounded(nearZero) || isRounded(-nearZero))
    return true;
  return isNear(1e30) || isNear(-1e30) || llvm::any_of(ofRoot.limits, isNear);
}

void ctxc::xf::dropUnreached(Operation *op, std::vector<double> &limits,
                             llvm::function_ref<const Facts &(Value)> of) {
  std::optional<EntryFunction> function;
  if (isByEntry(op) && op->getNumOperands() > 1 && !limits.empty())
    function = EntryFunction::of(op->getResult(0), of);
  if (function)
    llvm::erase_if(
        limits, [&](double limit) { return !function->comesTo(limit, of(function->getRoot())); });
}

Saturation ctxc::xf::tailsOf(Operation *op, llvm::function_ref<const Facts &(Value)> of) {
  Saturation tails;
  if (!isByEntry(op))
    return tails;
  if (op->getNumOperands() == 1) {
    EntryFunction own(op);
    own.addTails(of(op->getOperand(0)), tails);
    for (double limit : of(op->getOperand(0)).limits)
      tails.limits.push_back(std::isnan(limit) ? limit : own.at(limit));
  }
  if (std::optional<EntryFunction> whole = EntryFunction::of(op->getResult(0), of))
    whole->addTails(of(whole->getRoot()), tails);
  return tails;
}
