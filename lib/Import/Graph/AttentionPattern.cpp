#include "AttentionPattern.h"
#include "AddedScores.h"
#include "Capture.h"
#include "GraphValues.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

static graph::SymbolicType typeOf(Value value) {
  return cast<graph::SymbolicType>(value.getType());
}

/// The sizes of the axes before the last two; none where one is not a number.
static std::optional<SmallVector<int64_t>> headsOf(Value scores) {
  graph::SymbolicType type = typeOf(scores);
  SmallVector<int64_t> heads;
  for (unsigned axis = 0; axis + 2 < type.getRank(); ++axis) {
    std::optional<int64_t> size = type.getNumber(axis);
    if (!size)
      return std::nullopt;
    heads.push_back(*size);
  }
  return heads;
}

namespace {

class Matcher {
public:
  Matcher(const TokenAxes &axes, const Numbers &numbers) : axes(axes), numbers(numbers) {}

  std::optional<AttentionPattern> match(Value mixed);
  std::string obstacle;

private:
  bool matchWeights(Value weights);
  bool matchScores(Value scores);
  bool matchSum(graph::CallOp call);
  bool matchProduct(graph::CallOp call);
  bool matchWhole(graph::CallOp call);
  std::optional<std::pair<Value, double>> scaled(graph::CallOp call);
  Value beforeShapes(Value value) const;
  bool isAlongTokens(Value value, int64_t back) const;
  bool stop(Value at) {
    auto call = at ? at.getDefiningOp<graph::CallOp>() : graph::CallOp();
    if (obstacle.empty())
      obstacle = call ? call.getTarget().str() : "a value that is read";
    return false;
  }

  const TokenAxes &axes;
  const Numbers &numbers;
  AttentionPattern found;
  AddedScores added{axes, numbers, found, obstacle};
};

} // namespace

/// Whether the axis `back` from the last one is the tokens'.
bool Matcher::isAlongTokens(Value value, int64_t back) const {
  graph::SymbolicType type = typeOf(value);
  return back < type.getRank() && type.getSizes()[type.getRank() - 1 - back] == axes.tokens();
}

/// `value` before ops that leave its last two axes, and copies.
Value Matcher::beforeShapes(Value value) const {
  while (true) {
    value = beforeCopies(value);
    graph::CallOp shape;
    for (StringRef name : {"view", "reshape", "unsqueeze", "squeeze", "expand"})
      shape = shape ? shape : callOf(value, name);
    Value from = shape ? shape.getOperand(0) : Value();
    if (!from || typeOf(from).getRank() < 2 || typeOf(value).getRank() < 2 ||
        typeOf(from).getSizes().take_back(2) != typeOf(value).getSizes().take_back(2) ||
        axes.countAxes(from) != axes.countAxes(value))
      return value;
    // Only the heads' axes may be parted or joined, which keeps their order.
    if (callOf(value, "expand") && from.getType() != value.getType())
      return value;
    value = from;
  }
}

std::optional<AttentionPattern> Matcher::match(Value mixed) {
  Value value = beforeShapes(mixed);
  if (graph::CallOp whole = callOf(value, "scaled_dot_product_attention"))
    return matchWhole(whole) ? std::optional(found) : std::nullopt;
  graph::CallOp product = callOf(value, "matmul");
  Value weights = product ? product.getTensor("self") : Value();
  found.value = product ? product.getTensor("other") : Value();
  if (!found.value || !axes.isData(weights) || !axes.isData(found.value) ||
      axes.countAxes(weights) != 2 || axes.axis(found.value) != typeOf(found.value).getRank() - 2) {
    stop(value);
    return std::nullopt;
  }
  return matchWeights(weights) ? std::optional(found) : std::nullopt;
}

bool Matcher::matchWhole(graph::CallOp call) {
  found.query = call.getTensor("query");
  found.key = call.getTensor("key");
  found.value = call.getTensor("value");
  auto flag = [&](StringRef name) {
    auto given = dyn_cast_or_null<BoolAttr>(call.getArgument(name));
    return given && given.getValue();
  };
  if (numberOf(call, "dropout_p").value_or(0) != 0)
    return stop(call.getResult(0));
  for (Value one : {found.query, found.key, found.value})
    if (!axes.isData(one) || axes.axis(one) != typeOf(one).getRank() - 2)
      return stop(call.getResult(0));
  std::optional<int64_t> width = typeOf(found.query).getNumber(typeOf(found.query).getRank() - 1);
  if (!width)
    return stop(call.getResult(0));
  found.scale = numberOf(call, "scale").value_or(1 / std::sqrt(double(*width)));
  if (flag("is_causal"))
    found.seen = Steps::around(0, [](int64_t d) { return double(d >= 0); });
  Value mask = call.getTensor("attn_mask");
  if (!mask)
    return true;
  if (typeOf(mask).getElementType().isInteger(1)) {
    std::optional<Steps> steps = stepsOf(mask, axes, numbers, obstacle);
    if (!steps)
      return stop(mask);
    found.seen = Steps::merged(found.seen, *steps,
                               [](double a, double b) { return double(a != 0 && b != 0); });
    return true;
  }
  // The mask is added behind the scale.
  std::optional<SmallVector<int64_t>> heads = headsOf(found.query);
  double scale = std::exchange(found.scale, 1);
  bool isKnown = heads && added.add(mask, 1, *heads);
  found.scale = scale;
  return (isKnown && added.placeSlopes()) || stop(mask);
}

bool Matcher::matchWeights(Value weights) {
  weights = beforeShapes(weights);
  // With sinks the softmax has one more entry, which is cut off.
  bool isCut = false;
  if (graph::CallOp cut = callOf(weights, "slice")) {
    int64_t dim = integerOf(cut, "dim").value_or(0), rank = typeOf(weights).getRank();
    if ((dim + rank) % rank == rank - 1 && integerOf(cut, "start").value_or(0) == 0 &&
        integerOf(cut, "step").value_or(1) == 1 && isAlongTokens(weights, 0)) {
      isCut = typeOf(cut.getOperand(0)) != typeOf(weights);
      weights = beforeShapes(cut.getOperand(0));
    }
  }
  graph::CallOp softmax = callOf(weights, "softmax");
  std::optional<int64_t> dim = softmax ? integerOf(softmax, "dim") : std::nullopt;
  int64_t rank = typeOf(weights).getRank();
  if (!dim || (*dim + rank) % rank != rank - 1)
    return stop(weights);
  Value scores = beforeCopies(softmax.getTensor("self"));
  // A softmax is the same where a number is taken from all scores of a token.
  if (graph::CallOp shift = callOf(scores, "sub")) {
    std::optional<Sides> sides = sidesOf(shift);
    Value by = sides && sides->right ? beforeCopies(sides->right) : Value();
    graph::CallOp most = callOf(by, "amax");
    most = most ? most : callOf(by, "max");
    if (most && keepsLast(most) && beforeCopies(most.getOperand(0)) == beforeCopies(sides->left))
      scores = beforeCopies(sides->left);
  }
  if (graph::CallOp both = callOf(scores, "cat"); both && isCut) {
    int64_t along = integerOf(both, "dim").value_or(0);
    if (both.getNumOperands() != 2 || (along + rank) % rank != rank - 1)
      return stop(scores);
    Value sink = both.getOperand(1);
    while (graph::CallOp call = sink.getDefiningOp<graph::CallOp>()) {
      if (!llvm::is_contained({"view", "reshape", "expand", "unsqueeze", "_to_copy", "clone"},
                              call.getBaseName()))
        return stop(sink);
      sink = call.getOperand(0);
    }
    found.sinks = parameterOf(sink);
    if (!found.sinks)
      return stop(sink);
    scores = both.getOperand(0);
    isCut = false;
  }
  return isCut ? stop(scores) : matchScores(scores);
}

/// x of x · c, and c; where the call is another op, none.
std::optional<std::pair<Value, double>> Matcher::scaled(graph::CallOp call) {
  StringRef name = call.getBaseName();
  std::optional<Sides> sides = name == "mul" || name == "div" ? sidesOf(call) : std::nullopt;
  if (!sides)
    return std::nullopt;
  Value x = sides->left;
  std::optional<double> number = sides->number;
  if (!number && !axes.isData(sides->right))
    number = numberIn(sides->right, axes);
  if (!number && name == "mul" && !axes.isData(sides->left)) {
    number = numberIn(sides->left, axes);
    x = sides->right;
  }
  // Masks that keep scores by the factor 1, and add to the others.
  if (!number && name == "mul") {
    bool isFirst = axes.isData(sides->left);
    x = isFirst ? sides->left : sides->right;
    number = added.factorOfSeen(isFirst ? sides->right : sides->left);
  }
  if (!number || *number == 0)
    return std::nullopt;
  return std::pair(x, name == "mul" ? *number : 1 / *number);
}

bool Matcher::matchScores(Value scores) {
  constexpr unsigned mostOps = 32;
  for (unsigned count = 0; count < mostOps; ++count) {
    scores = beforeShapes(scores);
    auto call = scores.getDefiningOp<graph::CallOp>();
    if (!call || !axes.isData(scores) || axes.countAxes(scores) != 2)
      return stop(scores);
    StringRef name = call.getBaseName();
    if (name == "matmul")
      return matchProduct(call);
    if (name == "baddbmm")
      return matchSum(call);
    bool isInside = found.scale != 1 || found.cap;
    if (auto product = scaled(call)) {
      // c tanh(x / c)
      graph::CallOp tanh = callOf(beforeCopies(product->first), "tanh");
      auto inner =
          tanh ? beforeCopies(tanh.getOperand(0)).getDefiningOp<graph::CallOp>() : graph::CallOp();
      if (tanh && inner && !isInside && found.slopes.ofHeads.empty()) {
        auto quotient = scaled(inner);
        if (!quotient || std::abs(quotient->second * product->second - 1) > 1e-6)
          return stop(scores);
        found.cap = product->second;
        scores = quotient->first;
        continue;
      }
      found.scale *= product->second;
      scores = product->first;
      continue;
    }
    std::optional<Sides> sides = sidesOf(call);
    if (name == "add" && sides && sides->right) {
      bool isFirst = axes.isData(sides->left);
      std::optional<SmallVector<int64_t>> heads = headsOf(scores);
      if (!heads || !added.add(isFirst ? sides->right : sides->left, 1, *heads))
        return stop(scores);
      scores = isFirst ? sides->left : sides->right;
    } else if (name == "where" || name == "masked_fill") {
      if (!added.masked(call))
        return false;
      scores = call.getTensor("self");
    } else if ((name == "maximum" || name == "max") && !isInside && sides && sides->right &&
               numberIn(sides->right, axes).value_or(0) < -1e30) {
      scores = sides->left; // so that no score is less than a mask's
    } else {
      return stop(scores);
    }
  }
  return stop(scores);
}

/// β added + α batch1 · batch2
bool Matcher::matchSum(graph::CallOp call) {
  Value bias = call.getTensor("self");
  std::optional<double> beta = call.getArgument("beta") ? numberOf(call, "beta") : 1.0,
                        alpha = call.getArgument("alpha") ? numberOf(call, "alpha") : 1.0;
  std::optional<SmallVector<int64_t>> heads = headsOf(call.getResult(0));
  if (!bias || !beta || !alpha || *alpha == 0 || !heads)
    return stop(call.getResult(0));
  // With β = 0 what is added is not read.
  if (*beta != 0 && !added.add(bias, *beta, *heads))
    return false;
  found.scale *= *alpha;
  return matchProduct(call);
}

bool Matcher::matchProduct(graph::CallOp call) {
  StringRef name = call.getBaseName();
  found.query = call.getTensor(name == "baddbmm" ? "batch1" : "self");
  found.key = call.getTensor(name == "baddbmm" ? "batch2" : "other");
  if (!added.placeSlopes() || !found.query || !found.key || !axes.isData(found.query) ||
      !axes.isData(found.key) || axes.axis(found.query) != typeOf(found.query).getRank() - 2 ||
      axes.axis(found.key) != typeOf(found.key).getRank() - 1)
    return stop(call.getResult(0));
  return true;
}

std::optional<AttentionPattern> ctxc::pt2::matchAttention(Value mixed, const TokenAxes &axes,
                                                          const Numbers &numbers,
                                                          std::string &obstacle) {
  Matcher matcher(axes, numbers);
  std::optional<AttentionPattern> found = matcher.match(mixed);
  obstacle = matcher.obstacle;
  return found;
}
