#include "ctxc/Analysis/PatchReach.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

static int64_t entries(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static std::string text(double x) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", x);
  return result;
}

/// "2·√640", or "2·30·√640" for entries of at most 30.
static std::string diameterText(double perEntry, int64_t n) {
  std::string factor = perEntry == 1 ? "" : text(perEntry) + "·";
  return "2·" + factor + "√" + std::to_string(n);
}

Reach Reach::free() {
  Reach reach;
  reach.kind = Free;
  return reach;
}

/// An affine subspace; everything where it has all of the value's dimensions.
static Reach thin(Operation *op, int64_t dimensions, StringRef where = "") {
  if (dimensions >= entries(op->getResult(0)))
    return Reach::free();
  Reach reach;
  reach.kind = Reach::Thin;
  reach.dimensions = dimensions;
  reach.where = where.str();
  reach.origins = {op};
  return reach;
}

static Reach bounded(Operation *op, double distance, std::string text) {
  Reach reach;
  reach.kind = distance == 0 ? Reach::Fixed : Reach::Bounded;
  reach.distance = distance;
  reach.distanceText = std::move(text);
  reach.origins = {op};
  return reach;
}

static Reach oneSided(Reach reach, int sign) {
  reach.kind = Reach::OneSided;
  reach.sign = sign;
  return reach;
}

//===----------------------------------------------------------------------===//
// Zeros that are sure to occur
//===----------------------------------------------------------------------===//

// The zero facts count what is unknown as an open set. A rejection needs more: weights
// and activations, an open set of them, for which an entry is zero.

/// Whether some weights make each entry negative, and others positive.
static bool hasBothSigns(Value value, const ZeroRange &zeros) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true; // an activation that comes into the block
  if (auto site = dyn_cast<xf::AssignableOpInterface>(op)) {
    xf::Obligation needs = site.getObligation();
    return site.getParameterOperand().get().getDefiningOp<xf::ParamOp>() &&
           zeros.failure(needs, site.getDataOperand().get()) != xf::Zeros::OpenSet;
  }
  if (isa<xf::NormalizeOp, xf::ReshapeOp, xf::SliceOp>(op))
    return hasBothSigns(op->getOperand(0), zeros);
  if (auto times = dyn_cast<xf::TimesOp>(op))
    return !times.getFactor().isZero() && hasBothSigns(times.getData(), zeros);
  return false;
}

/// Whether each entry is zero on an open set of weights and activations.
static bool isZeroSomewhere(Value value, const ZeroRange &zeros) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto activation = dyn_cast<xf::ActivationOp>(op)) {
    switch (activation.getKind()) {
    case xf::ActivationKind::relu:
    case xf::ActivationKind::relu2:
      return hasBothSigns(activation.getData(), zeros) ||
             isZeroSomewhere(activation.getData(), zeros);
    case xf::ActivationKind::sigmoid:
    case xf::ActivationKind::exp:
    case xf::ActivationKind::softplus:
      return false;
    default: // zero at zero
      return isZeroSomewhere(activation.getData(), zeros);
    }
  }
  if (auto mul = dyn_cast<xf::MulOp>(op))
    return isZeroSomewhere(mul.getLhs(), zeros) || isZeroSomewhere(mul.getRhs(), zeros);
  if (isa<xf::TimesOp, xf::SoftcapOp, xf::ReshapeOp, xf::SliceOp, xf::ScaleOp>(op))
    return isZeroSomewhere(op->getOperand(0), zeros);
  return false;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static std::string wholeText(const Reach &r) {
  return r.origins.size() > 1 && !r.factors.empty() ? "(" + r.distanceText + ")" + r.factors
                                                    : r.distanceText + r.factors;
}

static Reach sumOfBounded(const Reach &a, const Reach &b) {
  Reach result = a;
  if (a.factors == b.factors && a.distance && b.distance) {
    *result.distance += *b.distance;
    result.distanceText += " + " + b.distanceText;
    return result;
  }
  result.distance.reset();
  result.distanceText = wholeText(a) + " + " + wholeText(b);
  result.factors = "";
  return result;
}

/// What two values that move independently reach by their sum, or side by side.
static Reach sum(const Reach &a, const Reach &b) {
  if (a.kind == Reach::Fixed)
    return b;
  if (b.kind == Reach::Fixed)
    return a;
  if (a.kind > b.kind)
    return sum(b, a);
  Reach result = a.kind == Reach::Bounded ? b : a;
  if (a.kind == Reach::Bounded && b.kind == Reach::Bounded)
    result = sumOfBounded(a, b);
  else if (a.kind == Reach::Bounded && b.kind == Reach::Thin)
    result.near = true;
  else if (a.kind == Reach::Thin && b.kind == Reach::Thin) {
    result.dimensions += b.dimensions;
    result.near |= b.near;
    if (result.where.empty())
      result.where = b.where;
  } else if (b.kind == Reach::Free || (a.kind != Reach::Bounded && a.kind != b.kind) ||
             (a.kind == Reach::OneSided && (a.sign != b.sign || a.sign == 0)))
    return Reach::free();
  result.origins = a.origins;
  result.origins.append(b.origins.begin(), b.origins.end());
  return result;
}

/// The sum as `op`'s result.
static Reach sum(Operation *op, const Reach &a, const Reach &b) {
  Reach result = sum(a, b);
  bool isAll = result.kind == Reach::Thin && result.dimensions >= entries(op->getResult(0));
  return isAll ? Reach::free() : result;
}

static Reach times(Reach reach, double factor) {
  if (factor == 0)
    return Reach::fixed();
  if (reach.kind == Reach::Bounded && std::abs(factor) != 1) {
    if (reach.distance)
      *reach.distance *= std::abs(factor);
    reach.distanceText =
        text(std::abs(factor)) + "·" +
        (reach.origins.size() > 1 ? "(" + reach.distanceText + ")" : reach.distanceText);
  }
  if (factor < 0)
    reach.sign = -reach.sign;
  return reach;
}

//===----------------------------------------------------------------------===//
// Through fixed parameters and factors
//===----------------------------------------------------------------------===//

static Reach through(xf::LinearOp op, Reach reach) {
  int64_t in = cast<RankedTensorType>(op.getData().getType()).getShape().back();
  int64_t out = cast<RankedTensorType>(op.getType()).getShape().back();
  int64_t rows = entries(op.getResult()) / out;
  if (reach.kind == Reach::Bounded) {
    reach.factors += "·‖" + Sites::name(op) + "‖₂";
    return reach;
  }
  if (reach.kind == Reach::Thin && reach.dimensions <= in * rows)
    return reach.dimensions < out * rows ? reach : Reach::free();
  if (in < out)
    return thin(op, in * rows);
  // As many rays as dimensions span a cone with a side that it does not reach.
  if (reach.kind == Reach::OneSided && in == out)
    return oneSided(reach, 0);
  return Reach::free();
}

static Reach through(xf::ScaleOp op, Reach reach) {
  if (reach.kind == Reach::Bounded) {
    double offset = op.getOffset().convertToDouble();
    std::string scale = Sites::name(op);
    reach.factors += "·‖" + (offset == 0 ? scale : text(offset) + " + " + scale) + "‖∞";
  }
  reach.sign = 0;
  return reach;
}

/// A bias that patches may change, shared by the leading dimensions or not, or may not.
static Reach through(xf::BiasOp op, const Reach &data, const Reach &bias) {
  if (bias.kind == Reach::Fixed)
    return data;
  return sum(op, data, thin(op, entries(op.getBias())));
}

static Reach through(xf::SliceOp op, Reach reach) {
  bool isAll = reach.kind == Reach::Thin && reach.dimensions >= entries(op.getResult());
  // Another side than that of an entry may be one of what is cut off.
  return isAll || (reach.kind == Reach::OneSided && reach.sign == 0) ? Reach::free() : reach;
}

/// Side by side: entries that do not move make a subspace of the rest.
static Reach through(xf::ConcatOp op, ArrayRef<Reach> parts) {
  int64_t moving = 0;
  bool allFree = true;
  Reach result = Reach::fixed();
  for (auto [value, part] : llvm::zip_equal(op.getParts(), parts)) {
    if (part.kind == Reach::Fixed)
      continue;
    moving += part.kind == Reach::Thin ? part.dimensions : entries(value);
    allFree &= part.kind == Reach::Free || part.kind == Reach::Thin;
    result = sum(result, part);
  }
  // A half line beside a fixed entry is a half line still.
  if (result.kind == Reach::Bounded || result.kind == Reach::OneSided)
    return result;
  return allFree ? thin(op, moving) : Reach::free();
}

/// Times a value that does not move.
Reach PatchReach::byFactor(Operation *op, Reach reach, Value factor) const {
  const xf::Facts &facts = zeros.facts(factor);
  switch (reach.kind) {
  case Reach::Bounded:
    if (facts.bound)
      return times(reach, *facts.bound);
    reach.factors += "·‖its factor‖∞";
    return reach;
  case Reach::OneSided:
    reach.sign = facts.floor && *facts.floor >= 0 ? reach.sign : 0;
    return reach;
  case Reach::Free: {
    if (!isZeroSomewhere(factor, zeros))
      return reach;
    int64_t n = entries(op->getResult(0));
    return thin(op, entries(factor) == n ? n - 1 : 0, facts.why);
  }
  case Reach::Fixed:
  case Reach::Thin:
    return reach;
  }
  llvm_unreachable("a reach of no known kind");
}

Reach PatchReach::product(xf::MulOp op, const Reach &lhs, const Reach &rhs) const {
  bool isOneNumber = op.getLhs().getType() != op.getRhs().getType();
  if (rhs.kind == Reach::Fixed)
    return byFactor(op, lhs, op.getRhs());
  if (lhs.kind != Reach::Fixed)
    return Reach::free();
  return isOneNumber ? thin(op, 1) : byFactor(op, rhs, op.getLhs());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The image that `op` has whatever patches do, if that binds it.
Reach PatchReach::image(Operation *op) const {
  const xf::Facts &facts = zeros.facts(op->getResult(0));
  int64_t n = entries(op->getResult(0));
  if (facts.length) {
    int64_t square = std::llround(*facts.length * *facts.length);
    return bounded(op, 2 * *facts.length, diameterText(1, square));
  }
  if (facts.bound)
    return bounded(op, 2 * *facts.bound * std::sqrt(double(n)), diameterText(*facts.bound, n));
  Reach reach = Reach::free();
  reach.origins = {op};
  return facts.floor ? oneSided(reach, 1) : reach;
}

Reach PatchReach::ofParameter(xf::ParamOp param) const {
  return sites.isFrozen(param) ? Reach::fixed() : Reach::free();
}

/// The result of an op whose parameter patches may change.
Reach PatchReach::assigned(xf::AssignableOpInterface site, const Reach &data) const {
  if (auto bias = dyn_cast<xf::BiasOp>(*site))
    return through(bias, data, Reach::free());
  if (data.kind != Reach::Fixed)
    return Reach::free();
  const xf::Facts &facts = zeros.facts(site.getDataOperand().get());
  if (facts.bound && *facts.bound == 0)
    return Reach::fixed();
  if (site.getChangeForm() == xf::ChangeForm::Rank1)
    return Reach::free();
  int64_t numbers = entries(site.getParameterOperand().get());
  if (isZeroSomewhere(site.getDataOperand().get(), zeros))
    return thin(site, std::min(numbers, entries(site->getResult(0)) - 1), facts.why);
  return thin(site, numbers);
}

Reach PatchReach::transfer(Operation *op) const {
  if (auto param = dyn_cast<xf::ParamOp>(op))
    return ofParameter(param);
  // What the contextual part makes of its own parameters is not the patch's.
  SmallVector<Reach> operands;
  for (Value operand : op->getOperands()) {
    bool own =
        operand.getDefiningOp<xf::ParamOp>() && sites.isOutOfScope(op) && !sites.followsContext(op);
    operands.push_back(own ? Reach::fixed() : reach(operand));
  }
  auto isFixed = [](const Reach &r) { return r.kind == Reach::Fixed; };
  if (llvm::all_of(operands, isFixed))
    return Reach::fixed();
  if (sites.isOutOfScope(op))
    return Reach::free();
  if (auto site = dyn_cast<xf::AssignableOpInterface>(op))
    if (!isFixed(operands[site.getParameterOperand().getOperandNumber()]))
      return assigned(site, operands[site.getDataOperand().getOperandNumber()]);

  Reach bound = image(op);
  Reach result = TypeSwitch<Operation *, Reach>(op)
                     .Case([&](xf::AddOp) { return sum(op, operands[0], operands[1]); })
                     .Case([&](xf::SubOp) { return sum(op, operands[0], times(operands[1], -1)); })
                     .Case([&](xf::TimesOp times_) {
                       return times(operands[0], times_.getFactor().convertToDouble());
                     })
                     .Case<xf::ReshapeOp, xf::BiasOp>([&](auto) { return operands[0]; })
                     .Case([&](xf::RotaryOp) { // orthogonal
                       Reach turned = operands[0];
                       turned.sign = 0;
                       return turned;
                     })
                     .Case([&](xf::LinearOp linear) { return through(linear, operands[1]); })
                     .Case([&](xf::ScaleOp scale) { return through(scale, operands[0]); })
                     .Case([&](xf::SliceOp slice) { return through(slice, operands[0]); })
                     .Case([&](xf::ConcatOp concat) { return through(concat, operands); })
                     .Case([&](xf::MulOp mul) { return product(mul, operands[0], operands[1]); })
                     .Case([&](xf::DivOp) {
                       if (!isFixed(operands[1]) || operands[0].kind == Reach::Bounded)
                         return Reach::free();
                       Reach quotient = operands[0];
                       quotient.sign = 0;
                       return quotient;
                     })
                     .Default([](Operation *) { return Reach::free(); });
  if (result.kind == Reach::Bounded && bound.kind == Reach::Bounded && result.factors.empty() &&
      result.distance)
    return *result.distance <= *bound.distance ? result : bound;
  bool boundIsBetter = bound.kind == Reach::Fixed || bound.kind == Reach::Bounded;
  return boundIsBetter || result.kind == Reach::Free ? bound : result;
}

PatchReach::PatchReach(const BlockGraph &graph, const Sites &sites, const ZeroRange &zeros)
    : sites(sites), zeros(zeros) {
  Block &body = graph.getBlock().getBody().front();
  for (Value arg : body.getArguments())
    table[arg] = Reach::fixed();
  for (Operation &op : body)
    for (Value result : op.getResults())
      table[result] = transfer(&op);
}
