#include "AddedScores.h"
#include "GraphValues.h"
#include "Mask.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// A score of less than this has no weight; where slopes make scores of any size, one of less than
/// the other.
constexpr double hidden = -1e4, hiddenBesideSlopes = -1e9;

/// `value` before copies. What is copied to a wider type was rounded, and is not looked behind.
static Value beforeExactCopies(Value value) {
  auto width = [](Value v) {
    auto type = dyn_cast<FloatType>(cast<graph::SymbolicType>(v.getType()).getElementType());
    return type ? type.getWidth() : 0;
  };
  while (true) {
    graph::CallOp copy;
    for (StringRef name : {"_to_copy", "to", "clone", "alias", "detach", "contiguous"})
      copy = copy ? copy : callOf(value, name);
    if (!copy || copy.getOperands().empty() || !width(copy.getOperand(0)) ||
        width(copy.getOperand(0)) < width(value))
      return value;
    value = copy.getOperand(0);
  }
}

/// Takes what a mask adds to scores that no other mask hides: nothing, or so much that a weight is
/// 0. Inside of a cap no weight is.
bool AddedScores::hide(const Steps &added) {
  double most = -INFINITY;
  Steps seen = Steps::merged(found.seen, added, [&](double a, double b) {
    bool isHidden = !found.cap && b * found.scale <= hidden;
    if (a != 0 && isHidden)
      most = std::max(most, b * found.scale);
    return a == 0 || isHidden ? 0 : b == 0 ? 1 : NAN;
  });
  for (auto [place, value] : seen.parts())
    if (std::isnan(value))
      return false;
  found.seen = std::move(seen);
  greatest = std::max(greatest, most);
  return true;
}

bool AddedScores::masked(graph::CallOp call, double factor) {
  bool keepsWhereSet = call.getBaseName() == "where";
  Value flag = call.getTensor(keepsWhereSet ? "condition" : "mask");
  std::optional<double> fill = numberOf(call, keepsWhereSet ? "other" : "value");
  if (Value other = call.getTensor(keepsWhereSet ? "other" : "value"); other && !fill)
    fill = numberIn(other, axes);
  std::optional<Steps> steps = flag && fill ? stepsOf(flag, axes, numbers, obstacle) : std::nullopt;
  if (!steps || !call.getTensor("self") || found.cap || !(*fill * factor * found.scale <= hidden))
    return stop(call);
  greatest = std::max(greatest, *fill * factor * found.scale);
  found.seen = Steps::merged(found.seen, *steps, [&](double a, double b) {
    return double(a != 0 && (b != 0) == keepsWhereSet);
  });
  return true;
}

/// `value` before its heads were repeated for the queries of each, side by side.
static Value beforeRepeatedHeads(Value value) {
  auto sizesOf = [](Value v) { return cast<graph::SymbolicType>(v.getType()).getSizes(); };
  auto before = [](graph::CallOp call) { return call ? call.getTensor("self") : Value(); };
  auto madeBy = [](Value made, StringRef name) {
    return made ? callOf(beforeExactCopies(made), name) : graph::CallOp();
  };
  graph::CallOp apart =
      madeBy(before(madeBy(before(callOf(value, "view")), "expand")), "unsqueeze");
  Value from = before(apart);
  const size_t rank = from ? sizesOf(from).size() : 0;
  bool isIt = rank == 4 && sizesOf(value).size() == rank && integerOf(apart, "dim") == 2 &&
              sizesOf(from).take_back(2) == sizesOf(value).take_back(2) &&
              sizesOf(from).front() == sizesOf(value).front();
  return isIt ? from : value;
}

/// Takes what is added for each key, whatever the query.
bool AddedScores::addOfKeys(Value added, double factor) {
  for (graph::CallOp call = callOf(added, "expand"); call && call.getTensor("self");
       call = callOf(added, "expand"))
    added = beforeExactCopies(call.getTensor("self"));
  auto type = cast<graph::SymbolicType>(added.getType());
  bool isIt = axes.isData(added) && axes.countAxes(added) == 1 && type.getRank() >= 2 &&
              axes.axis(added) == unsigned(type.getRank() - 1) &&
              type.getNumber(type.getRank() - 2) == 1 && !found.ofKeys;
  if (!isIt)
    return false;
  found.ofKeys = added;
  found.keyFactor = factor * found.scale;
  return true;
}

bool AddedScores::add(Value added, double factor, ArrayRef<int64_t> heads) {
  constexpr unsigned mostParts = 8;
  added = beforeExactCopies(beforeRepeatedHeads(beforeExactCopies(added)));
  std::string ofMask, ofSlopes;
  if (std::optional<Steps> steps = stepsOf(added, axes, numbers, ofMask);
      steps && hide(Steps::merged(*steps, *steps, [&](double x, double) { return x * factor; })))
    return true;
  auto call = added.getDefiningOp<graph::CallOp>();
  StringRef name = call ? call.getBaseName() : StringRef();
  if (++parts > mostParts)
    return stop(call);
  if (name == "where" || name == "masked_fill")
    return masked(call, factor) && add(call.getTensor("self"), factor, heads);
  std::optional<Sides> sides = name == "add" ? sidesOf(call) : std::nullopt;
  if (sides && sides->right)
    return add(sides->left, factor, heads) && add(sides->right, factor, heads);
  if (addOfKeys(added, factor))
    return true;
  if (std::optional<Slopes> slopes = slopesOf(added, heads, axes, numbers, ofSlopes);
      slopes && addSlopes(*slopes, factor * found.scale))
    return true;
  if (obstacle.empty())
    obstacle = ofSlopes.empty() ? ofMask : ofSlopes;
  return stop(call);
}

/// Takes slopes of scores, times `factor`. They are known but for what is the same for all tokens
/// that one sees, which a softmax does not notice; a cap does, and so does a sink.
bool AddedScores::addSlopes(Slopes slopes, double factor) {
  if (found.cap || found.sinks) {
    obstacle = found.cap ? "slopes inside of a cap" : "slopes beside sinks";
    return false;
  }
  Slopes &known = found.slopes;
  if (slopes.rounded)
    slopes.rounded *= factor;
  else
    for (double &each : slopes.ofHeads)
      each *= factor;
  if (known.ofHeads.empty()) {
    known = std::move(slopes);
  } else if (known.ofHeads.size() != slopes.ofHeads.size() || !known.rounded != !slopes.rounded ||
             (known.rounded && known.ofHeads != slopes.ofHeads)) {
    return false;
  } else if (known.rounded) {
    known.rounded += slopes.rounded;
  } else {
    for (auto [each, more] : llvm::zip(known.ofHeads, slopes.ofHeads))
      each += more;
  }
  return true;
}

bool AddedScores::placeSlopes() {
  Slopes &slopes = found.slopes;
  double factor = 1 / found.scale;
  if (slopes.rounded) {
    factor *= slopes.rounded;
    double power = std::exp2(std::round(std::log2(factor)));
    if (!(std::abs(factor - power) <= 1e-6 * power)) {
      obstacle = "slopes that are rounded before a factor";
      return false;
    }
    factor = power;
    slopes.rounded = 1;
  }
  for (double &each : slopes.ofHeads)
    each *= factor;
  if (llvm::all_of(slopes.ofHeads, [](double each) { return each == 0; }))
    slopes = Slopes();
  if (!slopes.ofHeads.empty() && greatest > hiddenBesideSlopes) {
    obstacle = "slopes beside a mask that they may outgrow";
    return false;
  }
  return true;
}

std::optional<double> AddedScores::factorOfSeen(Value value) const {
  std::string ignored;
  std::optional<Steps> steps = value ? stepsOf(value, axes, numbers, ignored) : std::nullopt;
  std::optional<double> factor;
  if (!steps)
    return std::nullopt;
  Steps both =
      Steps::merged(found.seen, *steps, [](double seen, double x) { return seen ? x : 0; });
  for (auto [place, x] : both.parts())
    if (found.seen.at(place) != 0 && std::exchange(factor, x).value_or(x) != x)
      return std::nullopt;
  return factor;
}
