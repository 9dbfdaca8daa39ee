// Zero and image facts of each op's result (FactsOpInterface).
#include "dialects/XF/XF.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

static Zeros worse(Zeros a, Zeros b) { return std::max(a, b); }
static Zeros better(Zeros a, Zeros b) { return std::min(a, b); }

/// Generic: zero on a null set of weights at most.
static Facts generic() { return {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""}; }

/// What an op with a stored parameter gives of data that is not zero as the op needs it:
/// either sign, as the parameter has.
static bool takesBothSigns(Value parameter, Zeros dataIsZero) {
  return parameter.getDefiningOp<ParamOp>() && dataIsZero != Zeros::OpenSet;
}

/// Where an entry is zero, alone or with all others.
static Zeros anyZero(const Facts &f) { return worse(f.elements, f.vector); }

Facts ParamOp::inferFacts(ArrayRef<Facts>) { return generic(); }
Facts SettingOp::inferFacts(ArrayRef<Facts>) { return generic(); }
Facts EmbedOp::inferFacts(ArrayRef<Facts>) { return generic(); }

// A generic matrix sends a nonzero vector to a vector without zero entries.
Facts LinearOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = {Zeros::NullSet, worse(Zeros::NullSet, operands[1].vector), std::nullopt,
                 operands[1].why};
  facts.bothSigns = takesBothSigns(getWeight(), operands[1].vector);
  return facts;
}

Facts BiasOp::inferFacts(ArrayRef<Facts>) {
  Facts facts = generic();
  facts.bothSigns = takesBothSigns(getBias(), Zeros::Never);
  return facts;
}

Facts ScaleOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = {worse(Zeros::NullSet, operands[0].elements),
                 worse(Zeros::NullSet, operands[0].vector), std::nullopt, operands[0].why};
  facts.bothSigns = takesBothSigns(getScale(), anyZero(operands[0]));
  facts.zeroSomewhere = operands[0].zeroSomewhere;
  return facts;
}

Facts NormalizeOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = {operands[0].elements, operands[0].vector, std::nullopt, operands[0].why};
  facts.bothSigns = operands[0].bothSigns;
  if (getKind() == NormKind::sum) { // bounded where no entry is negative
    if (operands[0].floor && *operands[0].floor >= 0) {
      facts.bound = 1.0;
      facts.floor = 0.0;
    }
    return facts;
  }
  auto type = cast<RankedTensorType>(getType());
  double d = type.getShape().back(), n = type.getNumElements();
  facts.bound = getKind() == NormKind::l2 ? 1.0 : std::sqrt(d);
  facts.length = getKind() == NormKind::l2 ? std::sqrt(n / d) : std::sqrt(n);
  if (getKind() == NormKind::layer) { // a constant vector has image zero
    facts.elements = worse(Zeros::NullSet, facts.elements);
    facts.vector = worse(Zeros::NullSet, facts.vector);
  }
  return facts;
}

Facts ActivationOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = {operands[0].elements, operands[0].vector, std::nullopt, operands[0].why};
  facts.zeroSomewhere = operands[0].zeroSomewhere; // zero at zero, but for the last cases
  switch (getKind()) {
  case ActivationKind::relu:
  case ActivationKind::relu2:
    facts.floor = 0.0;
    facts.zeroSomewhere |= operands[0].bothSigns;
    if (operands[0].floor.value_or(-1) >= 0)
      break; // never negative before it
    facts.elements = facts.vector = Zeros::OpenSet;
    facts.why = stringifyActivationKind(getKind()).str() + " is zero on every negative input";
    break;
  case ActivationKind::sigmoid:
    facts = {Zeros::Never, Zeros::Never, 1.0, ""};
    facts.floor = 0.0;
    break;
  case ActivationKind::tanh:
    facts.bound = 1.0;
    break;
  case ActivationKind::exp:
  case ActivationKind::softplus:
    facts = {Zeros::Never, Zeros::Never, std::nullopt, ""};
    facts.floor = 0.0;
    break;
  // Zero at zero only; the floors are rounded downwards.
  case ActivationKind::gelu:
  case ActivationKind::gelu_tanh:
    facts.floor = -0.171;
    break;
  case ActivationKind::silu:
    facts.floor = -0.279;
    break;
  case ActivationKind::quick_gelu:
    facts.floor = -0.164;
    break;
  }
  return facts;
}

Facts SoftmaxOp::inferFacts(ArrayRef<Facts>) {
  Facts facts = {Zeros::Never, Zeros::Never, 1.0, ""};
  facts.floor = 0.0;
  return facts;
}

Facts SoftcapOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = {operands[0].elements, operands[0].vector, getCap().convertToFloat(),
                 operands[0].why};
  facts.zeroSomewhere = operands[0].zeroSomewhere;
  return facts;
}

Facts ClampOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  double limit = getLimit().convertToFloat();
  facts.length.reset();
  if (getAbove()) {
    if (facts.bound && !facts.floor)
      facts.floor = -*facts.bound;
    if (facts.floor)
      facts.bound = std::max(std::abs(*facts.floor), std::min(facts.bound.value_or(limit), limit));
    return facts;
  }
  facts.bound = std::min(facts.bound.value_or(limit), limit);
  if (facts.floor)
    facts.floor = std::max(*facts.floor, -limit);
  return facts;
}

/// A sum vanishes on a null set unless both terms vanish on an open one.
static Facts factsOfSum(const Facts &a, const Facts &b) {
  Facts facts;
  facts.elements =
      worse(Zeros::NullSet, worse(better(a.elements, anyZero(b)), better(anyZero(a), b.elements)));
  facts.vector = worse(Zeros::NullSet, better(a.vector, b.vector));
  if (a.bound && b.bound)
    facts.bound = *a.bound + *b.bound;
  facts.why = a.why.empty() ? b.why : a.why;
  return facts;
}

Facts AddOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = factsOfSum(operands[0], operands[1]);
  if (operands[0].floor && operands[1].floor)
    facts.floor = *operands[0].floor + *operands[1].floor;
  return facts;
}
Facts SubOp::inferFacts(ArrayRef<Facts> operands) { return factsOfSum(operands[0], operands[1]); }

Facts MulOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts;
  facts.elements = worse(operands[0].elements, operands[1].elements);
  // Two vectors may miss each other's entries, so that the product is zero as a
  // whole where neither is.
  facts.vector = worse(anyZero(operands[0]), anyZero(operands[1]));
  if (operands[0].bound && operands[1].bound)
    facts.bound = *operands[0].bound * *operands[1].bound;
  facts.zeroSomewhere = operands[0].zeroSomewhere || operands[1].zeroSomewhere;
  bool isSquare = getLhs() == getRhs();
  bool areFromZero = operands[0].floor.value_or(-1) >= 0 && operands[1].floor.value_or(-1) >= 0;
  if (isSquare || areFromZero)
    facts.floor = 0.0;
  facts.why = operands[0].why.empty() ? operands[1].why : operands[0].why;
  return facts;
}

Facts DivOp::inferFacts(ArrayRef<Facts> operands) {
  return {operands[0].elements, operands[0].vector, std::nullopt, operands[0].why};
}

Facts TimesOp::inferFacts(ArrayRef<Facts> operands) {
  if (getFactor().isZero())
    return {Zeros::OpenSet, Zeros::OpenSet, 0.0, "a factor of zero"};
  Facts facts = operands[0];
  double factor = std::abs(getFactor().convertToFloat());
  if (facts.bound)
    facts.bound = *facts.bound * factor;
  if (facts.length)
    facts.length = *facts.length * factor;
  if (facts.floor && getFactor().isNegative())
    facts.floor.reset();
  else if (facts.floor)
    facts.floor = *facts.floor * factor;
  return facts;
}

Facts BroadcastOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.length.reset();
  return facts;
}

Facts ReshapeOp::inferFacts(ArrayRef<Facts> operands) { return operands[0]; }

Facts SliceOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.vector = anyZero(facts); // a part may vanish where the whole does not
  return facts;
}

Facts ConcatOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands.front();
  facts.length.reset();
  facts.floor.reset();
  facts.bothSigns = facts.zeroSomewhere = false; // not looked at
  for (const Facts &f : operands.drop_front()) {
    facts.elements = worse(anyZero(facts), anyZero(f)); // one part may vanish alone
    facts.vector = better(facts.vector, f.vector);
    facts.bound =
        facts.bound && f.bound ? std::optional(std::max(*facts.bound, *f.bound)) : std::nullopt;
    if (facts.why.empty())
      facts.why = f.why;
  }
  return facts;
}

Facts RotaryOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.elements = worse(Zeros::NullSet, facts.elements); // a pair of zeros stays zero
  facts.bound.reset();
  facts.floor.reset();
  facts.bothSigns = facts.zeroSomewhere = false; // not looked at
  return facts;
}

Facts AttentionOp::inferFacts(ArrayRef<Facts> operands) {
  return {worse(Zeros::NullSet, operands[2].elements), worse(Zeros::NullSet, operands[2].vector),
          operands[2].bound, operands[2].why};
}
