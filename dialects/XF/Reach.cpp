#include "dialects/XF/Reach.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

static int64_t entries(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static std::string text(double x) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", x);
  return result;
}

Reach Reach::free() {
  Reach reach;
  reach.kind = Free;
  return reach;
}

Reach Reach::thin(Operation *op, int64_t dimensions, StringRef where) {
  if (dimensions >= entries(op->getResult(0)))
    return Reach::free();
  Reach reach;
  reach.kind = Thin;
  reach.dimensions = dimensions;
  reach.where = where.str();
  reach.origins = {op};
  return reach;
}

Reach Reach::bounded(Operation *op, double distance, std::string text) {
  Reach reach;
  reach.kind = distance == 0 ? Fixed : Bounded;
  reach.distance = distance;
  reach.distanceText = std::move(text);
  reach.origins = {op};
  return reach;
}

Reach Reach::oneSided(Reach reach, int sign) {
  reach.kind = OneSided;
  reach.sign = sign;
  return reach;
}

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

/// The reach of two independent values together: of their sum, or of both side by side.
Reach xf::join(const Reach &a, const Reach &b) {
  if (a.kind == Reach::Fixed)
    return b;
  if (b.kind == Reach::Fixed)
    return a;
  if (a.kind > b.kind)
    return join(b, a);
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
  // The value that binds first comes first: beside a bounded value, the other one.
  bool swap = a.kind == Reach::Bounded && b.kind != Reach::Bounded;
  const Reach &first = swap ? b : a, &second = swap ? a : b;
  result.origins = first.origins;
  result.origins.append(second.origins.begin(), second.origins.end());
  return result;
}

Reach xf::sum(Operation *op, const Reach &a, const Reach &b) {
  Reach result = join(a, b);
  bool isAll = result.kind == Reach::Thin && result.dimensions >= entries(op->getResult(0));
  return isAll ? Reach::free() : result;
}

Reach xf::times(Reach reach, double factor) {
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

Reach xf::byFactor(Operation *op, Reach reach, const Facts &facts, int64_t factorEntries) {
  if (facts.isZero())
    return Reach::fixed();
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
    if (!facts.zeroSomewhere)
      return reach;
    int64_t n = entries(op->getResult(0));
    return Reach::thin(op, factorEntries == n ? n - 1 : 0, facts.why);
  }
  case Reach::Fixed:
  case Reach::Thin:
    return reach;
  }
  llvm_unreachable("a reach of no known kind");
}
