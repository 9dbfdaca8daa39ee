// The facts of each op's result (FactsOpInterface): where it is zero, and which values it takes.
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/FixedMatrix.h"
#include "dialects/XF/XF.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

/// Facts of a generic value: zero at most on a null set of weights.
static Facts generic() { return {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""}; }

/// Facts of a value of which nothing is known, for the reason `why`.
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

/// Whether the result of an op with a stored parameter takes both signs, as its parameter does, for
/// data that is nonzero as the op needs it.
static bool takesBothSigns(Value parameter, Zeros dataIsZero) {
  return isGeneric(parameter) && dataIsZero != Zeros::OpenSet;
}

static int64_t lastDim(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}
static bool haveOneShape(Value a, Value b) {
  return cast<ShapedType>(a.getType()).getShape() == cast<ShapedType>(b.getType()).getShape();
}

Facts ParamOp::inferFacts(ArrayRef<Facts>) {
  if (getConstant())
    return unknown("the numbers of '" + getName().str() + "' are not in the file");
  Facts facts = generic();
  facts.free = true;
  return facts;
}
Facts SettingOp::inferFacts(ArrayRef<Facts>) { return generic(); }
Facts EmbedOp::inferFacts(ArrayRef<Facts> operands) {
  return isGeneric(getTable()) ? generic() : operands[0];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The facts of a ⊙ b.
static Facts factsOfProduct(const Facts &a, const Facts &b) {
  const std::string &why = a.why.empty() ? b.why : a.why;
  if (a.isZero() || b.isZero())
    return Facts::constant(0, why);
  Facts facts;
  facts.elements = worse(a.elements, b.elements);
  // The nonzero entries of a and b may lie at different indices: then the product is zero as a
  // whole, although neither factor is.
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

/// The facts of M x for a known matrix M.
static Facts factsOfFixed(const MatrixFacts &matrix, const Facts &data) {
  Facts facts;
  // An entry of x with a number of its own moves every sum that it is in.
  bool moves = data.free && !matrix.anyZeroRow;
  facts.elements = moves ? worse(Zeros::NullSet, anyZero(data)) : Zeros::OpenSet;
  facts.vector = moves                           ? worse(Zeros::NullSet, data.vector)
                 : matrix.rank == matrix.columns ? data.vector
                                                 : Zeros::OpenSet;
  facts.free = data.free && matrix.rank == matrix.rows;
  if (data.bound)
    facts.bound = matrix.largestRowSum * *data.bound;
  facts.why = !data.why.empty() || moves ? data.why
              : matrix.anyZeroRow        ? "a known matrix has rows of zeros"
                                         : "the rows of a known matrix may send it to zero";
  return facts;
}

// A generic matrix sends a nonzero vector to a vector without zero entries.
Facts LinearOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[1];
  if (operands[0].isZero() || data.isZero())
    return Facts::constant(0, operands[0].isZero() ? operands[0].why : data.why);
  if (std::optional<MatrixFacts> matrix = matrixFacts(*this, operands[0]))
    return factsOfFixed(*matrix, data);
  if (!isGeneric(getWeight()))
    return unknown("its matrix is computed");
  Facts facts = {Zeros::NullSet, worse(Zeros::NullSet, data.vector), std::nullopt, data.why};
  facts.bothSigns = takesBothSigns(getWeight(), data.vector);
  facts.free = data.vector != Zeros::OpenSet;
  return facts;
}

Facts ScaleOp::inferFacts(ArrayRef<Facts> operands) {
  const Facts &data = operands[0], &scale = operands[1];
  if (!isGeneric(getScale())) {
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
  Facts facts = {operands[0].elements, operands[0].vector, std::nullopt, operands[0].why};
  // Zeros of the divisor part what is above zero from what is below.
  facts.piecewise = anyZero(operands[1]) != Zeros::Never;
  return facts;
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

/// The facts of a sum of two independent values (see BlockFacts.h): it vanishes at most on a null
/// set, unless both terms vanish on open sets.
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
  if (!isGeneric(getBias()))
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

/// Whether a norm without epsilon has another formula on either side of where it divides by zero:
/// of data that lies on a line it is one direction, or the opposite one. Where the data has a
/// number of its own for each of several dimensions, one goes around its zero.
static bool isPartedByZero(const Facts &data, NormKind kind, int64_t d) {
  if (kind == NormKind::sum)
    return data.floor.value_or(-1) < 0; // else the sum is zero only with all of it
  if (kind != NormKind::layer && data.vector == Zeros::Never)
    return false;
  return !data.free || d < (kind == NormKind::layer ? 3 : 2);
}

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
  facts.piecewise = isExact && isPartedByZero(data, getKind(), d);
  if (getKind() == NormKind::sum) { // bounded where no entry is negative
    if (isExact && cast<RankedTensorType>(getType()).getRank() == 1)
      facts.total = 1;
    if (data.floor && *data.floor >= 0) {
      facts.bound = facts.ceiling = 1.0;
      facts.floor = 0.0;
    }
    return facts;
  }
  double n = cast<RankedTensorType>(getType()).getNumElements();
  facts.bound = getKind() == NormKind::l2 ? 1.0 : std::sqrt(double(d));
  facts.length = getKind() == NormKind::l2 ? std::sqrt(n / d) : std::sqrt(n);
  if (d == (getKind() == NormKind::layer ? 2 : 1)) { // only a sign, where ε = 0
    bool isKnown = d == 1 && isExact && anyZero(data) == Zeros::Never;
    for (double sign : {1.0, -1.0})
      if (isKnown && (sign > 0 ? data.floor.value_or(-1) >= 0 : data.ceiling.value_or(1) <= 0))
        return Facts::constant(sign, "the sign of one entry");
  }
  if (getKind() == NormKind::layer) { // constant vectors become zero
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
// Shapes, positions, other tokens
//===----------------------------------------------------------------------===//

Facts BroadcastOp::inferFacts(ArrayRef<Facts> operands) {
  Facts facts = operands[0];
  facts.length.reset();
  facts.free = false; // several entries share one number
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
  facts.bothSigns = facts.zeroSomewhere = facts.free = false; // not analysed
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

double RotaryOp::getStretch() {
  double rotated = std::abs(double(getAmplitude().convertToFloat()));
  return 2 * lastDim(getFrequencies()) < lastDim(getData()) ? std::max(rotated, 1.0) : rotated;
}

Facts RotaryOp::inferFacts(ArrayRef<Facts> operands) {
  if (operands[0].isZero())
    return operands[0];
  Facts facts = operands[0];
  if (facts.length)
    facts.length = *facts.length * getStretch();
  facts.elements = worse(Zeros::NullSet, facts.elements); // a pair of zeros stays zero
  facts.bound.reset();
  facts.floor.reset();
  facts.ceiling.reset();
  facts.bothSigns = facts.zeroSomewhere = facts.free = false; // not analysed
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
