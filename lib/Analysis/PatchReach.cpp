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

static Reach sum(const Reach &a, const Reach &b) {
  if (a.kind == Reach::Fixed)
    return b;
  if (b.kind == Reach::Fixed)
    return a;
  if (a.kind != b.kind)
    return Reach::free();
  Reach result = a;
  result.origins.append(b.origins.begin(), b.origins.end());
  switch (a.kind) {
  case Reach::Bounded:
    if (a.factors != b.factors)
      return Reach::free();
    result.distance += b.distance;
    result.distanceText += " + " + b.distanceText;
    return result;
  case Reach::Thin:
    result.dimensions += b.dimensions;
    return result;
  case Reach::OneSided:
    return a.positive && b.positive ? result : Reach::free();
  case Reach::Fixed:
  case Reach::Free:
    return Reach::free();
  }
  llvm_unreachable("a reach of no known kind");
}

static Reach bounded(double distance, std::string text) {
  Reach reach;
  reach.kind = distance == 0 ? Reach::Fixed : Reach::Bounded;
  reach.distance = distance;
  reach.distanceText = std::move(text);
  return reach;
}

/// The image that `op` has whatever it reads, if that binds it.
static Reach intrinsic(Operation *op) {
  auto speaker = dyn_cast<xf::FactsOpInterface>(op);
  if (!speaker)
    return Reach::free();
  xf::Facts facts = speaker.inferFacts(SmallVector<xf::Facts>(op->getNumOperands()));
  Reach reach = Reach::free();
  int64_t n = entries(op->getResult(0));
  if (facts.length) {
    int64_t square = std::llround(*facts.length * *facts.length);
    reach = bounded(2 * *facts.length, diameterText(1, square));
  } else if (facts.bound) {
    reach = bounded(2 * *facts.bound * std::sqrt(double(n)), diameterText(*facts.bound, n));
  } else if (facts.floor) {
    reach.kind = Reach::OneSided;
  }
  reach.origins = {op};
  return reach;
}

static Reach times(Reach reach, double factor) {
  if (reach.kind == Reach::Bounded && std::abs(factor) != 1) {
    reach.distance *= std::abs(factor);
    reach.distanceText =
        text(std::abs(factor)) + "·" +
        (reach.origins.size() > 1 ? "(" + reach.distanceText + ")" : reach.distanceText);
  }
  reach.positive &= factor > 0;
  return reach;
}

/// After a fixed matrix, or a fixed scale.
static Reach through(xf::LinearOp op, Reach reach) {
  int64_t in = cast<RankedTensorType>(op.getData().getType()).getShape().back();
  int64_t out = cast<RankedTensorType>(op.getType()).getShape().back();
  if (reach.kind == Reach::Bounded) {
    reach.factors += "·‖" + Sites::name(op) + "‖₂";
    return reach;
  }
  if (reach.kind == Reach::Thin && reach.dimensions <= in)
    return reach;
  if (in >= out)
    return Reach::free();
  int64_t rows = entries(op.getResult()) / out;
  Reach thin;
  thin.kind = Reach::Thin;
  thin.dimensions = in * rows;
  thin.origins = {op};
  return thin;
}

static Reach through(xf::ScaleOp op, Reach reach) {
  if (reach.kind == Reach::Bounded) {
    double offset = op.getOffset().convertToDouble();
    std::string scale = Sites::name(op);
    reach.factors += "·‖" + (offset == 0 ? scale : text(offset) + " + " + scale) + "‖∞";
  }
  reach.positive = false;
  return reach;
}

static Reach through(xf::MulOp op, const Reach &lhs, const Reach &rhs) {
  bool oneNumber = op.getLhs().getType() != op.getRhs().getType();
  if (oneNumber && lhs.kind == Reach::Fixed) {
    Reach line;
    line.kind = Reach::Thin;
    line.dimensions = 1;
    line.origins = {op};
    return line;
  }
  return Reach::free();
}

Reach PatchReach::ofParameter(xf::ParamOp param) const {
  return sites.isFrozen(param) ? Reach::fixed() : Reach::free();
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
      return Reach::free();

  Reach bound = intrinsic(op);
  Reach result = TypeSwitch<Operation *, Reach>(op)
                     .Case([&](xf::AddOp) { return sum(operands[0], operands[1]); })
                     .Case([&](xf::SubOp) { return sum(operands[0], times(operands[1], -1)); })
                     .Case([&](xf::TimesOp times_) {
                       return times(operands[0], times_.getFactor().convertToDouble());
                     })
                     .Case<xf::ReshapeOp, xf::BiasOp>([&](auto) { return operands[0]; })
                     .Case([&](xf::LinearOp linear) { return through(linear, operands[1]); })
                     .Case([&](xf::ScaleOp scale) { return through(scale, operands[0]); })
                     .Case([&](xf::MulOp mul) { return through(mul, operands[0], operands[1]); })
                     .Default([](Operation *) { return Reach::free(); });
  if (result.kind == Reach::Bounded && bound.kind == Reach::Bounded && result.factors.empty())
    return result.distance <= bound.distance ? result : bound;
  bool boundIsBetter = bound.kind == Reach::Fixed || bound.kind == Reach::Bounded;
  return boundIsBetter || result.kind == Reach::Free ? bound : result;
}

PatchReach::PatchReach(const BlockGraph &graph, const Sites &sites) : sites(sites) {
  Block &body = graph.getBlock().getBody().front();
  for (Value arg : body.getArguments())
    table[arg] = Reach::fixed();
  for (Operation &op : body)
    for (Value result : op.getResults())
      table[result] = transfer(&op);
}
