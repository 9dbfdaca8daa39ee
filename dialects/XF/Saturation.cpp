#include "dialects/XF/Saturation.h"
#include "dialects/XF/BlockFacts.h"
#include "dialects/XF/EntryImage.h"
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/Functions.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

using Limits = std::vector<double>;
using FactsOf = llvm::function_ref<const Facts &(Value)>;
using IsFixed = llvm::function_ref<bool(Value)>;

/// A number that is not known.
static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// More are as good as any number.
static constexpr size_t mostLimits = 64;

static bool isZero(double limit) { return limit == 0 || std::isnan(limit); }
static bool mayBeZero(const Limits &limits) { return llvm::any_of(limits, isZero); }

bool Facts::underflows() const {
  bool isNever = anyZero(*this) == Zeros::Never;
  return llvm::any_of(limits,
                      [&](double limit) { return limit == 0 || (std::isnan(limit) && !isNever); });
}

bool Facts::vanishes() const { return zeroedBy > 0 && zeroedBy <= few; }

/// What is zero where the data is: of an op that makes a zero of zeros.
static Limits zeroOf(const Limits &data) { return mayBeZero(data) ? Limits{0} : Limits{}; }

static Limits pairs(const Limits &a, const Limits &b,
                    llvm::function_ref<double(double, double)> f) {
  Limits result;
  for (double x : a)
    for (double y : b)
      result.push_back(f(x, y));
  return result;
}

/// A factor that underflows makes the product do so. A known zero is one of the product itself.
static Limits ofProduct(Value a, Value b, double offset, FactsOf of, IsFixed isFixed) {
  Limits other = of(b).limits;
  for (double &limit : other)
    limit += offset;
  Limits result = pairs(of(a).limits, other, std::multiplies<>());
  for (auto [value, limits] : {std::pair(a, of(a).limits), std::pair(b, other)})
    if (!isFixed(value) && mayBeZero(limits))
      result.push_back(0);
  return result;
}

/// Sums of products with the numbers of a row. That many numbers underflow at once, without a
/// factor that does, is left out.
static Limits ofRow(ArrayRef<double> row, const Facts &of) {
  const Limits &data = of.limits;
  Limits sums{0};
  bool isAtOnce = int64_t(row.size()) <= few || of.vanishes();
  for (double factor : row) {
    sums = pairs(sums, data, [&](double sum, double limit) {
      double more = factor * limit, next = sum + more;
      return std::abs(next) <= 1e-6 * std::abs(more) ? 0 : next;
    });
    if (sums.size() > 4 * mostLimits)
      return {unknown};
  }
  bool anyOther = llvm::any_of(data, [](double limit) { return limit != 0; });
  return isAtOnce || anyOther ? sums : Limits{};
}

static Limits ofMatrix(LinearOp op, FactsOf of) {
  const Limits &data = of(op.getData()).limits;
  if (data.empty())
    return {};
  const Facts &weight = of(op.getWeight());
  auto shape = cast<ShapedType>(op.getWeight().getType()).getShape();
  int64_t rows = shape[op.getTransposed()], columns = shape[!op.getTransposed()];
  if (!weight.numbers)
    return of(op.getData()).vanishes() ? Limits{0} : Limits{};
  Limits result;
  for (int64_t r = 0; r < rows && result.size() <= mostLimits; ++r) {
    SmallVector<double> row;
    for (int64_t c = 0; c < columns; ++c)
      if (double number = (*weight.numbers)[op.getTransposed() ? c * rows + r : r * columns + c])
        row.push_back(number);
    if (!row.empty())
      llvm::append_range(result, ofRow(row, of(op.getData())));
  }
  return result;
}

/// Of an entry beside which the others vanish, of zeros, and of one or two entries that have
/// limits.
static Limits ofNorm(NormalizeOp op, const Facts &of) {
  const Limits &data = of.limits;
  int64_t d = cast<ShapedType>(op.getType()).getShape().back();
  NormKind kind = op.getKind();
  bool isLayer = kind == NormKind::layer;
  double most = kind == NormKind::l2 || kind == NormKind::sum ? 1 : std::sqrt(double(d - isLayer));
  // Equal entries, of which a layer norm makes zeros, are zero at once.
  Limits result = isLayer && !of.vanishes() ? Limits{} : zeroOf(data);
  result.insert(result.end(), {most, -most});
  if (of.overflows(2)) // its squares are infinite
    result.push_back(0);
  if (d > 2)
    return result;
  auto first = [&](double a, double b) { // of (a, b), or of a alone
    double mean = isLayer ? (a + b) / 2 : 0, other = d == 1 ? 0 : b - mean;
    a -= mean;
    double squares = (a * a + other * other) / (kind == NormKind::l2 ? 1 : double(d));
    double by = kind == NormKind::sum ? a + other : std::sqrt(squares);
    return a == 0 ? 0 : a / by;
  };
  llvm::append_range(result, pairs(data, data, first));
  return result;
}

/// Of Σ w_j y_j: all terms vanish where a weight is the only one, or where they are few.
static Limits ofMixture(CombineOp op, FactsOf of) {
  const Limits &weights = of(op.getWeights()).limits, &data = of(op.getData()).limits;
  bool isFew = cast<ShapedType>(op.getWeights().getType()).getDimSize(0) <= few;
  if (mayBeZero(data) && (isFew || !weights.empty()))
    return {0};
  if (!isFew || weights.empty())
    return {};
  return mayBeZero(weights) ? Limits{0} : data.empty() ? Limits{} : Limits{unknown};
}

static Limits limitsOf(Operation *op, FactsOf of, IsFixed isFixed) {
  auto of0 = [&]() -> const Limits & { return of(op->getOperand(0)).limits; };
  return llvm::TypeSwitch<Operation *, Limits>(op)
      .Case<ActivationOp, SoftcapOp, ClampOp, LeakyOp, PowerOp>([](auto) { return Limits{}; })
      .Case<RoundOp>([&](auto round) {
        Limits result;
        for (double limit : of0())
          result.push_back(round.at(limit));
        return result;
      })
      .Case<MulOp, OuterOp>(
          [&](auto) { return ofProduct(op->getOperand(0), op->getOperand(1), 0, of, isFixed); })
      .Case<ScaleOp>([&](auto scale) {
        double offset = scale.getOffset().convertToDouble();
        return ofProduct(scale.getData(), scale.getScale(), offset, of, isFixed);
      })
      .Case<DivOp>([&](auto div) {
        Limits result = pairs(of0(), of(div.getRhs()).limits,
                              [](double a, double b) { return b == 0 ? a : a / b; });
        llvm::append_range(result, isFixed(div.getLhs()) ? Limits{} : zeroOf(of0()));
        if (of(div.getRhs()).overflows())
          result.push_back(0);
        return result;
      })
      .Case<NormalizeOp>([&](auto norm) { return ofNorm(norm, of(norm.getData())); })
      .Case<SoftmaxOp>([](auto) { return Limits{0, 1}; })
      .Case<LinearOp>([&](auto linear) { return ofMatrix(linear, of); })
      .Case<ExpertLinearOp>(
          [&](auto experts) { return of(experts.getData()).vanishes() ? Limits{0} : Limits{}; })
      .Case<CombineOp>([&](auto combine) { return ofMixture(combine, of); })
      .Case<ConvOp, ScanOp>([&](auto) { return zeroOf(of(op->getOperand(1)).limits); })
      .Case<RotaryOp>([&](auto) { return zeroOf(of0()); })
      .Case<AttentionOp>([&](auto attention) { // a mean of values
        const Limits &values = of(op->getOperand(2)).limits;
        return attention.getSinks() ? zeroOf(values) : values;
      })
      .Case<GatherOp, BroadcastOp, SliceOp, TransposeOp, PermuteOp, ReshapeOp>(
          [&](auto) { return of0(); })
      .Case<ConcatOp>([&](auto) {
        Limits result;
        for (Value part : op->getOperands())
          llvm::append_range(result, of(part).limits);
        return result;
      })
      .Default([&](auto) {
        bool any = llvm::any_of(op->getOperands(), [&](Value v) { return !of(v).limits.empty(); });
        return any ? Limits{unknown} : Limits{};
      });
}

Saturation ctxc::xf::saturationOf(Operation *op, FactsOf of, IsFixed isFixed) {
  Saturation result = tailsOf(op, of);
  llvm::append_range(result.limits, limitsOf(op, of, isFixed));
  auto follow = [&](Value value, Value beside, bool isDivided) {
    if (value.getType() == op->getResult(0).getType() && !isFixed(beside))
      for (double limit : of(beside).limits) {
        if (isDivided && limit == 0) // a zero counts as 1
          limit = 1;
        if (!isZero(limit))
          result.followed.push_back({value, isDivided ? 1 / limit : limit});
      }
  };
  // Beside a large entry of x the others are rounded away, and Wᵀx is Wx there.
  if (auto linear = dyn_cast<LinearOp>(op))
    for (Operation *user : linear.getData().getUsers())
      if (auto other = dyn_cast<LinearOp>(user); other && other.getWeight() == linear.getWeight() &&
                                                 other->isBeforeInBlock(op) &&
                                                 other.getTransposed() != linear.getTransposed())
        result.followed.push_back({other.getResult(), 1});
  auto scale = dyn_cast<ScaleOp>(op);
  if (isa<MulOp, DivOp>(op) || (scale && scale.getOffset().isZero())) {
    follow(op->getOperand(0), op->getOperand(1), isa<DivOp>(op));
    if (!isa<DivOp>(op))
      follow(op->getOperand(1), op->getOperand(0), false);
  }
  return result;
}

bool ctxc::xf::isLinearIn(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto link = dyn_cast<AssignableOpInterface>(op); link && isa<ScaleOp, LinearOp>(op))
    return &operand == &link.getDataOperand();
  if (isa<DivOp>(op))
    return operand.getOperandNumber() == 0;
  if (isa<RotaryOp>(op))
    return operand.getOperandNumber() == 0;
  return isa<MulOp, SliceOp, TransposeOp, PermuteOp, ReshapeOp, BroadcastOp>(op);
}

void ctxc::xf::tidyLimits(Facts &facts) {
  if (std::optional<double> constant = facts.getConstant())
    facts.limits = {*constant};
  for (double &limit : facts.limits)
    limit += 0.0; // no −0
  constexpr double slack = 1e-6;
  llvm::erase_if(facts.limits, [&](double limit) {
    double around = slack * std::max(1.0, std::abs(limit));
    return std::isinf(limit) || (facts.floor && limit < *facts.floor - around) ||
           (facts.ceiling && limit > *facts.ceiling + around);
  });
  llvm::sort(facts.limits,
             [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  facts.limits.erase(llvm::unique(facts.limits, same), facts.limits.end());
  if (facts.limits.size() > mostLimits)
    facts.limits = {unknown};
}

/// How many numbers take a vector of the result to zero through those of the operands; 0: none.
static int64_t zeroedThrough(Operation *op, bool isSum, FactsOf of) {
  auto by = [&](Value v) { return of(v).zeroedBy; };
  auto least = [](int64_t a, int64_t b) { return a && b ? std::min(a, b) : a + b; };
  if (isa<AttentionOp>(op)) // a mean of values
    return by(op->getOperand(2));
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  bool isJoined = isSum || (isa<ConcatOp>(op) && type.getRank() == 1);
  int64_t result = 0;
  for (Value operand : op->getOperands()) {
    if (isJoined && !by(operand))
      return 0;
    result = isJoined ? result + by(operand) : least(result, by(operand));
  }
  if (auto div = dyn_cast<DivOp>(op)) {
    int64_t divisors = cast<RankedTensorType>(div.getRhs().getType()).getShape().back();
    return least(by(div.getLhs()), of(div.getRhs()).overflows() ? divisors : 0);
  }
  return isa<NormalizeOp>(op) && of(op->getOperand(0)).overflows(2) ? 1 : result;
}

/// By the growth of the operands; what is bounded does not grow.
static double growthOf(Operation *op, const Facts &facts, FactsOf of) {
  if (facts.bound)
    return 0;
  constexpr double endless = HUGE_VAL;
  double sum = 0, largest = 0;
  for (Value operand : op->getOperands()) {
    sum += of(operand).growth;
    largest = std::max(largest, of(operand).growth);
  }
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<ParamOp, NormalizeOp, SoftmaxOp>([](auto) { return 0; })
      .Case<ActivationOp>([&](auto activation) {
        return activation.getKind() != ActivationKind::exp ? largest : facts.ceiling ? 0 : endless;
      })
      .Case<PowerOp>([&](auto power) {
        return power.getRoot() ? largest : largest * double(power.getExponent());
      })
      .Case<MulOp, OuterOp, ScaleOp, LinearOp, ExpertLinearOp, CombineOp>([&](auto) { return sum; })
      .Case<DivOp>([&](auto div) {
        return of(div.getRhs()).underflows() ? endless : of(div.getLhs()).growth;
      })
      .Case<AttentionOp>([&](auto) { return of(op->getOperand(2)).growth; }) // a mean of values
      .Default([&](auto) { return largest; });
}

void ctxc::xf::setExtremes(Operation *op, bool isSum, FactsOf of, Facts &facts) {
  facts.growth = growthOf(op, facts, of);
  // A high power of a tenth is nothing beside another number.
  if (isa<MulOp, OuterOp, CombineOp, PowerOp>(op) && facts.growth >= 6 &&
      std::isfinite(facts.growth)) {
    facts.limits.push_back(0);
    tidyLimits(facts);
  }
  if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      type && type.getRank() > 0 && facts.underflows()) {
    int64_t width = type.getShape().back(), through = zeroedThrough(op, isSum, of);
    facts.zeroedBy = through ? std::min(through, width) : width;
  }
}
