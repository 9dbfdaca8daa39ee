// Attention that a model spells out: products of queries and keys, a mask, a softmax, and the sum of
// values. What is computed for each token on the way becomes ops of xf as everything else, and the
// rest an xf.attention. A region that does not match entirely stays an xf.contextual.
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

static RankedTensorType ranked(Value value) { return cast<RankedTensorType>(value.getType()); }
static graph::SymbolicType typeOf(Value value) {
  return cast<graph::SymbolicType>(value.getType());
}

namespace {

/// What makes a mixed value, from its end to its beginning.
struct Spelled {
  Value query, key, value; ///< of the program; each of one token
  double scale = 1;
  std::optional<double> cap;
  Steps seen = Steps(1); ///< 1 where a token sees another
  graph::StoredOp sinks;
};

class Matcher {
public:
  explicit Matcher(const TokenAxes &axes) : axes(axes) {}

  std::optional<Spelled> match(Value mixed);
  std::string obstacle;

private:
  bool matchWeights(Value weights);
  bool matchScores(Value scores);
  bool matchProduct(graph::CallOp call);
  bool matchWhole(graph::CallOp call);
  bool hide(const Steps &added, double hidden);
  bool masked(graph::CallOp call, bool keepsWhereSet);
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
  Spelled found;
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
    for (StringRef name : {"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "expand"})
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

std::optional<Spelled> Matcher::match(Value mixed) {
  Value value = beforeShapes(mixed);
  if (graph::CallOp whole = callOf(value, "scaled_dot_product_attention"))
    return matchWhole(whole) ? std::optional(found) : std::nullopt;
  graph::CallOp product = callOf(value, "matmul");
  product = product ? product : callOf(value, "bmm");
  Value weights = product ? product.getTensor("self") : Value();
  found.value = product ? product.getTensor(product.getBaseName() == "bmm" ? "mat2" : "other")
                        : Value();
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
  std::optional<Steps> added = stepsOf(mask, axes, obstacle);
  if (!added)
    return stop(mask);
  if (typeOf(mask).getElementType().isInteger(1)) {
    found.seen = Steps::merged(found.seen, *added,
                               [](double a, double b) { return double(a != 0 && b != 0); });
    return true;
  }
  return hide(*added, -1e4) || stop(mask);
}

/// Takes what a mask adds: nothing, or so much that a weight is 0.
bool Matcher::hide(const Steps &added, double hidden) {
  for (auto [place, value] : added.parts())
    if (value != 0 && !(value <= hidden))
      return false;
  found.seen = Steps::merged(found.seen, added,
                             [](double a, double b) { return double(a != 0 && b == 0); });
  return true;
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
  softmax = softmax ? softmax : callOf(weights, "_softmax");
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
  if (!number || *number == 0)
    return std::nullopt;
  return std::pair(x, name == "mul" ? *number : 1 / *number);
}

/// Of where and masked_fill: the scores where they are not hidden.
bool Matcher::masked(graph::CallOp call, bool keepsWhereSet) {
  Value flag = call.getTensor(keepsWhereSet ? "condition" : "mask");
  std::optional<double> fill = numberOf(call, keepsWhereSet ? "other" : "value");
  if (Value other = call.getTensor(keepsWhereSet ? "other" : "value"); other && !fill)
    fill = numberIn(other, axes);
  std::optional<Steps> steps = flag && fill ? stepsOf(flag, axes, obstacle) : std::nullopt;
  if (!steps || !(*fill <= -1e4))
    return stop(call.getResult(0));
  found.seen = Steps::merged(found.seen, *steps, [&](double a, double b) {
    return double(a != 0 && (b != 0) == keepsWhereSet);
  });
  return true;
}

bool Matcher::matchScores(Value scores) {
  constexpr unsigned mostOps = 32;
  for (unsigned count = 0; count < mostOps; ++count) {
    scores = beforeShapes(scores);
    auto call = scores.getDefiningOp<graph::CallOp>();
    if (!call || !axes.isData(scores) || axes.countAxes(scores) != 2)
      return stop(scores);
    StringRef name = call.getBaseName();
    bool isInside = found.scale != 1 || found.cap; // a mask is outside of all others
    if (name == "matmul" || name == "bmm")
      return matchProduct(call);
    if (auto product = scaled(call)) {
      // c tanh(x / c)
      graph::CallOp tanh = callOf(beforeCopies(product->first), "tanh");
      auto inner = tanh ? beforeCopies(tanh.getOperand(0)).getDefiningOp<graph::CallOp>()
                        : graph::CallOp();
      if (tanh && inner && !isInside) {
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
    if (name == "add" && sides && sides->right && !isInside) {
      bool isFirst = axes.isData(sides->left);
      Value mask = isFirst ? sides->right : sides->left;
      std::optional<Steps> added =
          axes.isData(mask) ? std::nullopt : stepsOf(mask, axes, obstacle);
      if (!added || !hide(*added, -1e4))
        return stop(scores);
      scores = isFirst ? sides->left : sides->right;
    } else if (name == "where" && !isInside) {
      if (!masked(call, true))
        return false;
      scores = call.getTensor("self");
    } else if (name == "masked_fill" && !isInside) {
      if (!masked(call, false))
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

bool Matcher::matchProduct(graph::CallOp call) {
  found.query = call.getTensor("self");
  found.key = call.getTensor(call.getBaseName() == "bmm" ? "mat2" : "other");
  if (!found.query || !found.key || !axes.isData(found.query) || !axes.isData(found.key) ||
      axes.axis(found.query) != typeOf(found.query).getRank() - 2 ||
      axes.axis(found.key) != typeOf(found.key).getRank() - 1)
    return stop(call.getResult(0));
  return true;
}

//===----------------------------------------------------------------------===//
// What is computed for each token
//===----------------------------------------------------------------------===//

bool Raiser::raiseTokens(ArrayRef<Value> wanted, std::string &obstacle) {
  SmallVector<Value> work(wanted);
  llvm::DenseSet<Value> seen;
  llvm::SetVector<Operation *> calls;
  llvm::DenseMap<Value, std::pair<Rotation, Value>> turned;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!isData(value) || lookup(value) || !seen.insert(value).second)
      continue;
    auto call = value.getDefiningOp<graph::CallOp>();
    if (!call || axes.mixing(call) != Mixing::None) {
      obstacle = call ? call.getTarget().str() : "a value that is read";
      return false;
    }
    calls.insert(call);
    if (auto rotation = rotations.find(value)) {
      work.push_back(rotation->second);
      turned[value] = *rotation;
    } else {
      llvm::append_range(work, call.getOperands());
    }
  }
  SmallVector<Operation *> order(calls.begin(), calls.end());
  llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  // What only a pattern reads, such as the mean in a norm, has none of its own.
  for (Operation *op : order) {
    auto call = cast<graph::CallOp>(op);
    auto rotation = turned.find(call.getResult(0));
    if (rotation == turned.end())
      llvm::consumeError(raiseByPattern(call).takeError());
    else if (lookup(rotation->second.second))
      bind(call.getResult(0), rotary(call, rotation->second.first, rotation->second.second));
  }
  for (Value value : wanted)
    if (Value stopped = firstUnknown(value)) {
      obstacle = stopped.getDefiningOp<graph::CallOp>().getTarget().str();
      return false;
    }
  return true;
}

/// What no pattern knows of what makes `value`, though all that it reads is known; null where
/// `value` is known.
Value Raiser::firstUnknown(Value value) const {
  while (!lookup(value)) {
    auto isUnknown = [&](Value operand) { return isData(operand) && !lookup(operand); };
    Operation *op = value.getDefiningOp();
    auto next = llvm::find_if(op->getOperands(), isUnknown);
    if (next == op->operand_end())
      return value;
    value = *next;
  }
  return {};
}

Value Raiser::setting(Location loc, StringRef name, Type type, Attribute value) {
  Value &known = settings[{name, value}];
  if (!known) {
    unsigned count = llvm::count_if(settings, [&](auto &one) {
      return one.first.first == name && one.second;
    });
    std::string as = count ? (name + "_" + Twine(count)).str() : name.str();
    known = xf::SettingOp::create(builder, NameLoc::get(builder.getStringAttr(as)), type, as,
                                  value);
  }
  return known;
}

Value Raiser::rotary(graph::CallOp call, const Rotation &rotation, Value from) {
  Location loc = call.getLoc();
  auto floats = builder.getF32Type();
  Value x = lookup(from);
  auto type = tokenType(call.getResult(0), axes); // as many numbers as x has
  int64_t count = ranked(x).getNumElements();
  x = reshaped(loc, x, RankedTensorType::get({count / rotation.width, rotation.width}, floats));
  if (rotation.parted)
    x = reshaped(loc, exchanged(loc, x, {count / rotation.width, rotation.width / 2, 2, 1}),
                 x.getType());
  auto of = RankedTensorType::get({int64_t(rotation.frequencies.size())}, floats);
  Value frequencies = setting(loc, "rope", of,
                              DenseElementsAttr::get(of, ArrayRef(rotation.frequencies)));
  Value y = xf::RotaryOp::create(builder, loc, x.getType(), rotation.style, x, frequencies,
                                 llvm::APFloat(float(rotation.amplitude)));
  return reshaped(loc, y, *type);
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// What repeats its rows to make `value`: of keys that several heads share.
static Value beforeRepeats(Value value) {
  Value inner = value;
  if (auto flat = inner.getDefiningOp<xf::ReshapeOp>())
    inner = flat.getData();
  ArrayRef<int64_t> shape = ranked(inner).getShape();
  if (auto copies = inner.getDefiningOp<xf::ConcatOp>();
      copies && llvm::all_equal(copies.getParts()) && shape.size() == 3 &&
      copies.getAlong() == 1 && ranked(copies.getParts().front()).getDimSize(1) == 1)
    return copies.getParts().front();
  if (auto rows = inner.getDefiningOp<xf::BroadcastOp>())
    return rows.getData();
  return value;
}

/// `value` as (heads, width).
static Value asHeads(OpBuilder &builder, Location loc, Value value) {
  int64_t width = ranked(value).getShape().back();
  auto type = RankedTensorType::get({ranked(value).getNumElements() / width, width},
                                    builder.getF32Type());
  auto shaped = value.getDefiningOp<xf::ReshapeOp>();
  if (shaped && shaped.getData().getType() == type)
    return shaped.getData();
  return value.getType() == type ? value : xf::ReshapeOp::create(builder, loc, type, value);
}

/// Whether key heads of `shape` meet query heads of `of` in order, a group of these each.
static bool isGrouped(ArrayRef<int64_t> shape, ArrayRef<int64_t> of) {
  SmallVector<int64_t> heads(shape.drop_back()), queries(of.drop_back());
  if (heads.size() > queries.size())
    return false;
  heads.insert(heads.begin(), queries.size() - heads.size(), 1);
  bool isRepeated = false;
  for (auto [g, h] : llvm::zip(heads, queries)) {
    if (h == 1 && g == 1)
      continue;
    if (g == h ? isRepeated : g != 1)
      return false;
    isRepeated |= g != h;
  }
  return true;
}

llvm::Expected<bool> Raiser::raiseAttention(Value mixed, std::string &obstacle) {
  Matcher matcher(axes);
  std::optional<Spelled> found = matcher.match(mixed);
  if (!found) {
    obstacle = matcher.obstacle;
    return false;
  }
  std::optional<Sight> sight = sightOf(found->seen);
  if (!sight || sight->window == 1) {
    obstacle = "a mask that is neither causal nor a window";
    return false;
  }
  if (!raiseTokens({found->query, found->key, found->value}, obstacle))
    return false;
  auto type = tokenType(mixed, axes);
  if (!type)
    return type.takeError();
  Location loc = mixed.getLoc();
  Value q = lookup(found->query), k = lookup(found->key), v = lookup(found->value);
  for (Value one : {q, k, v})
    if (!one || !isa<FloatType>(ranked(one).getElementType())) {
      obstacle = "queries, keys or values that are no numbers";
      return false;
    }
  if (!isGrouped(ranked(k).getShape(), ranked(q).getShape()) ||
      !isGrouped(ranked(v).getShape(), ranked(q).getShape())) {
    obstacle = "heads that are not grouped in order";
    return false;
  }
  Value queries = asHeads(builder, loc, q), keys = asHeads(builder, loc, beforeRepeats(k)),
        values = asHeads(builder, loc, beforeRepeats(v));
  if (ranked(keys).getDimSize(0) != ranked(values).getDimSize(0)) {
    keys = asHeads(builder, loc, k);
    values = asHeads(builder, loc, v);
  }
  int64_t heads = ranked(queries).getDimSize(0), width = ranked(values).getDimSize(1);
  if (ranked(keys).getDimSize(0) != ranked(values).getDimSize(0) ||
      heads % ranked(keys).getDimSize(0) || heads * width != type->getNumElements() ||
      ranked(keys).getDimSize(1) != ranked(queries).getDimSize(1)) {
    obstacle = "heads of keys and of values that do not fit";
    return false;
  }
  Value sinks = found->sinks ? parameter(found->sinks) : Value();
  if (sinks && ranked(sinks).getShape() != ArrayRef<int64_t>{heads}) {
    obstacle = "sinks that are not one for each head";
    return false;
  }
  Value window = sight->window ? setting(loc, "window", builder.getIndexType(),
                                         builder.getI64IntegerAttr(sight->window))
                               : Value();
  FloatAttr cap = found->cap ? builder.getF32FloatAttr(float(*found->cap)) : FloatAttr();
  Value result = xf::AttentionOp::create(
      builder, loc, RankedTensorType::get({heads, width}, builder.getF32Type()), queries, keys,
      values, window, /*slopes=*/Value(), sinks, llvm::APFloat(float(found->scale)), cap,
      /*rounded=*/false, sight->bidirectional, StringAttr());
  bind(mixed, reshaped(loc, result, *type));
  return true;
}
