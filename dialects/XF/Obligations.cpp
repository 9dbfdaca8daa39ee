// Where obligations can fail: where a divisor can be zero.
#include "dialects/XF/BlockFacts.h"
#include "dialects/XF/Saturation.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

/// Whether no two entries have opposite signs, so that they cannot cancel in a sum.
static bool haveOneSign(const Facts &f) {
  return (f.floor && *f.floor >= 0) || (f.ceiling && *f.ceiling <= 0);
}

/// Whether as many of `count` entries may be rounded to a number as to its opposite.
static bool canCancel(int64_t count, ArrayRef<double> limits) {
  return count % 2 == 0 && llvm::any_of(limits, [&](double limit) {
           return std::isnan(limit) || (limit != 0 && llvm::is_contained(limits, -limit));
         });
}

/// Whether some entry of a softmax is far from zero in `value`: it has all of them, or the largest.
static bool hasLargeShare(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<SoftmaxOp>(op))
    return true;
  if (isa_and_nonnull<ReshapeOp, TimesOp>(op))
    return hasLargeShare(op->getOperand(0));
  auto gather = dyn_cast_or_null<GatherOp>(op);
  auto top = gather ? gather.getSelected().getDefiningOp<TopKOp>() : TopKOp();
  auto shares = gather ? gather.getData().getDefiningOp<SoftmaxOp>() : SoftmaxOp();
  return top && shares &&
         (top.getScores() == gather.getData() || top.getScores() == shares.getData());
}

Zeros xf::failureOf(Obligation obligation, Value value, const Facts &facts) {
  Zeros anywhere = std::max(facts.elements, facts.vector);
  auto type = cast<RankedTensorType>(value.getType());
  bool isOfAll = obligation == Obligation::NonzeroVector || obligation == Obligation::NonzeroSum;
  if (obligation == Obligation::NonzeroElements && facts.underflows())
    return Zeros::OpenSet;
  if (isOfAll && facts.vanishes() && !facts.total && !hasLargeShare(value))
    return Zeros::OpenSet;
  switch (obligation) {
  case Obligation::None:
    return Zeros::Never;
  case Obligation::NonzeroVector: // each of several vectors must be nonzero
    return type.getNumElements() == type.getShape().back() ? facts.vector : anywhere;
  case Obligation::NonzeroElements:
    return anywhere;
  case Obligation::FiniteElements:
    return facts.overflows() ? Zeros::OpenSet : Zeros::Never;
  case Obligation::SameSelection:
    return Zeros::NullSet; // two scores are equal up to rounding
  case Obligation::NonzeroSum:
    if (haveOneSign(facts))
      return facts.vector;
    if (canCancel(type.getNumElements(), facts.limits))
      return Zeros::OpenSet;
    return facts.free || type.getNumElements() == 1 ? std::max(Zeros::NullSet, anywhere)
                                                    : Zeros::OpenSet;
  }
  llvm_unreachable("an obligation of no known kind");
}

std::string xf::unreliableDivisor(Obligation obligation, const Facts &facts) {
  std::string why = facts.why.empty() ? "" : " (" + facts.why + ")";
  switch (obligation) {
  case Obligation::None:
  case Obligation::FiniteElements:
  case Obligation::SameSelection:
    return "";
  case Obligation::NonzeroSum:
    if (!facts.isZero() && !haveOneSign(facts) && !facts.free)
      return "numbers whose sum may be zero on an open set of activations" + why;
    break;
  case Obligation::NonzeroElements:
    if (!facts.isZero() && facts.elements == Zeros::OpenSet)
      return "entries that are zero on an open set of activations" + why;
    break;
  case Obligation::NonzeroVector:
    break;
  }
  return facts.isZero() ? "what is always zero" + why : "";
}
