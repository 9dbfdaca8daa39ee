#include "RelatedNumbers.h"
#include "dialects/XF/XF.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

/// Numbers are float32.
static constexpr double rounding = 2e-6;

SmallVector<double, 2> ctxc::relatedNumbers(double number, const NewSizes &sizes) {
  constexpr double powers[] = {-1, -0.5, 1, 0.5, -2, 2};
  constexpr double fractions[] = {1, 2, 0.5, 3, 1 / 3.0, 4, 0.25};
  SmallVector<double, 2> found;
  double size = std::abs(number);
  if (size == 0 || size == 1 || !std::isfinite(number)) // 1 is what it is
    return found;
  auto propose = [&](double is, double becomes) {
    bool isNew = std::abs(becomes - is) > rounding * is;
    for (double known : found)
      isNew &= std::abs(std::abs(known) - becomes) > rounding * becomes;
    if (std::abs(is - size) <= rounding * size && isNew && found.size() < 2)
      found.push_back(std::copysign(becomes, number));
  };
  for (double fraction : fractions)
    for (auto [from, to] : sizes)
      for (double power : powers)
        propose(fraction * std::pow(from, power), fraction * std::pow(to, power));
  for (double fraction : fractions)
    for (auto [from, to] : sizes)
      for (auto [other, otherTo] : sizes)
        for (double power : powers)
          for (double otherPower : powers)
            if (from != other)
              propose(fraction * std::pow(from, power) * std::pow(other, otherPower),
                      fraction * std::pow(to, power) * std::pow(otherTo, otherPower));
  return found;
}

namespace {
/// A place of numbers: an attribute of an op.
struct Place {
  unsigned op; ///< in the block's order
  StringAttr name;
  SmallVector<Attribute, 2> becomes; ///< the likeliest first
};
} // namespace

/// What the attribute may become; empty where it has no number that may change.
static SmallVector<Attribute, 2> relatedTo(Attribute attribute, const NewSizes &sizes) {
  SmallVector<Attribute, 2> found;
  for (unsigned choice = 0; choice < 2; ++choice) {
    bool anyChanged = false;
    auto follow = [&](const APFloat &number) {
      SmallVector<double, 2> related = relatedNumbers(number.convertToDouble(), sizes);
      if (related.empty())
        return number;
      anyChanged = true;
      APFloat followed(related[std::min<size_t>(choice, related.size() - 1)]);
      bool loses;
      followed.convert(number.getSemantics(), APFloat::rmNearestTiesToEven, &loses);
      return followed;
    };
    Attribute made;
    if (auto one = dyn_cast<FloatAttr>(attribute))
      made = FloatAttr::get(one.getType(), follow(one.getValue()));
    else if (auto many = dyn_cast<DenseFPElementsAttr>(attribute))
      made = DenseElementsAttr::get(many.getType(),
                                    llvm::map_to_vector(many.getValues<APFloat>(), follow));
    if (anyChanged && !llvm::is_contained(found, made))
      found.push_back(made);
  }
  return found;
}

std::vector<OwningOpRef<ModuleOp>> ctxc::withRelatedNumbers(ModuleOp smaller,
                                                            const NewSizes &sizes) {
  constexpr size_t most = 8;
  NewSizes changed;
  for (auto [from, to] : sizes)
    if (from != to)
      changed[from] = to;
  SmallVector<Place> places;
  auto opsOf = [](ModuleOp module) {
    SmallVector<Operation *> ops;
    for (Operation &op : (*module.getOps<xf::BlockOp>().begin()).getBody().front())
      ops.push_back(&op);
    return ops;
  };
  for (auto [i, op] : llvm::enumerate(opsOf(smaller)))
    for (NamedAttribute attribute : op->getAttrDictionary())
      if (auto becomes = relatedTo(attribute.getValue(), changed); !becomes.empty())
        places.push_back({unsigned(i), attribute.getName(), std::move(becomes)});
  std::vector<OwningOpRef<ModuleOp>> copies;
  auto add = [&](ArrayRef<Place> which, size_t choice) {
    if (copies.size() == most)
      return;
    copies.push_back(cast<ModuleOp>(smaller->clone()));
    SmallVector<Operation *> ops = opsOf(*copies.back());
    for (const Place &place : which)
      ops[place.op]->setAttr(place.name, place.becomes[std::min(choice, place.becomes.size() - 1)]);
  };
  if (places.empty())
    return copies;
  add(places, 0);
  if (llvm::any_of(places, [](const Place &place) { return place.becomes.size() > 1; }))
    add(places, 1);
  for (size_t i = 0; i < places.size() && places.size() > 1; ++i)
    for (size_t choice = 0; choice < places[i].becomes.size(); ++choice)
      add(places[i], choice);
  return copies;
}
