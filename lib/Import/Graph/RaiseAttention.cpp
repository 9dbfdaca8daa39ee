// Attention that a model spells out: products of queries and keys, a mask, a softmax, and the sum
// of values. What is computed for each token on the way becomes ops of xf as everything else, and
// the rest an xf.attention. A region that does not match entirely stays an xf.contextual.
#include "AttentionPattern.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

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
    if (call && axes.mixing(call) != Mixing::None && raiseRecurrent(value))
      continue;
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
    unsigned count =
        llvm::count_if(settings, [&](auto &one) { return one.first.first == name && one.second; });
    std::string as = count ? (name + "_" + Twine(count)).str() : name.str();
    known =
        xf::SettingOp::create(builder, NameLoc::get(builder.getStringAttr(as)), type, as, value);
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
    x = reshaped(loc,
                 transposed(loc, x, {count / rotation.width, rotation.width / 2, 2}, {0, 2, 1}),
                 x.getType());
  auto of = RankedTensorType::get({int64_t(rotation.frequencies.size())}, floats);
  Value frequencies =
      setting(loc, "rope", of, DenseElementsAttr::get(of, ArrayRef(rotation.frequencies)));
  Value y = xf::RotaryOp::create(builder, loc, x.getType(), rotation.style, x, frequencies,
                                 llvm::APFloat(float(rotation.amplitude)));
  return reshaped(loc, y, *type);
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// What repeats its rows to make `value`: of keys that several heads share.
static Value beforeCopiedHeads(Value value) {
  Value inner = value;
  if (auto flat = inner.getDefiningOp<xf::ReshapeOp>())
    inner = flat.getData();
  ArrayRef<int64_t> shape = ranked(inner).getShape();
  if (auto copies = inner.getDefiningOp<xf::ConcatOp>();
      copies && llvm::all_equal(copies.getParts()) && shape.size() == 3 && copies.getAlong() == 1 &&
      ranked(copies.getParts().front()).getDimSize(1) == 1)
    return copies.getParts().front();
  if (auto rows = inner.getDefiningOp<xf::BroadcastOp>())
    return rows.getData();
  return value;
}

/// `value` as (heads, width).
static Value asHeads(OpBuilder &builder, Location loc, Value value) {
  int64_t width = ranked(value).getShape().back();
  auto type =
      RankedTensorType::get({ranked(value).getNumElements() / width, width}, builder.getF32Type());
  auto shaped = value.getDefiningOp<xf::ReshapeOp>();
  if (shaped && shaped.getData().getType() == type)
    return shaped.getData();
  return value.getType() == type ? value : xf::ReshapeOp::create(builder, loc, type, value);
}

/// Whether `value` may be zero whatever is read, by a factor that no training has changed: then
/// nothing of other tokens would come through.
static bool mayBeNothing(Value value) {
  SmallVector<Operation *> work{value.getDefiningOp()};
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto times = dyn_cast<xf::TimesOp>(op); times && times.getFactor().isZero())
      return true;
    for (Value operand : op->getOperands()) {
      auto param = operand.getDefiningOp<xf::ParamOp>();
      if (param && param.getFrozen() && !isa<xf::BiasOp, xf::EmbedOp>(op))
        return true;
      work.push_back(operand.getDefiningOp());
    }
  }
  return false;
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

/// What is added to a key's scores is one more entry of the key, which meets a number in the query.
bool Raiser::withKeyScores(Location loc, const AttentionPattern &found, Value &queries,
                           Value &keys) {
  const int64_t heads = ranked(queries).getDimSize(0), groups = ranked(keys).getDimSize(0),
                width = ranked(keys).getDimSize(1);
  Value added = lookup(found.ofKeys);
  const float number = float(found.keyFactor / found.scale);
  auto column = RankedTensorType::get({groups, 1}, builder.getF32Type());
  if (!added || !isFloat(added) || !std::isfinite(number))
    return false;
  if (ranked(added).getNumElements() == 1 && groups > 1)
    added = repeated(loc, reshaped(loc, added, RankedTensorType::get({1, 1}, builder.getF32Type())),
                     column);
  if (!added || ranked(added).getNumElements() != groups)
    return false;
  auto wider = [&](Value of, int64_t rows, Value more) -> Value {
    auto type = RankedTensorType::get({rows, width + 1}, builder.getF32Type());
    return xf::ConcatOp::create(builder, loc, type, SmallVector<Value>{of, more}, 1);
  };
  keys = wider(keys, groups, reshaped(loc, added, column));
  queries = wider(queries, heads,
                  xf::TimesOp::create(builder, loc, xf::createOnes(builder, loc, {heads, 1}),
                                      llvm::APFloat(number)));
  return true;
}

llvm::Expected<bool> Raiser::raiseAttention(Value mixed, std::string &obstacle) {
  std::optional<AttentionPattern> found =
      matchAttention(mixed, axes, rotations.numbersOf(), obstacle);
  if (!found)
    return false;
  std::optional<Sight> sight = sightOf(found->seen);
  if (!sight || sight->window == 1) {
    obstacle = "a mask that is neither causal nor a window";
    return false;
  }
  SmallVector<Value> wanted{found->query, found->key, found->value};
  if (found->ofKeys)
    wanted.push_back(found->ofKeys);
  if (!raiseTokens(wanted, obstacle))
    return false;
  if (found->ofKeys && found->cap) {
    obstacle = "numbers of keys inside of a cap";
    return false;
  }
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
  if (mayBeNothing(v)) {
    obstacle = "values times a tensor that is not trained";
    return false;
  }
  if (!isGrouped(ranked(k).getShape(), ranked(q).getShape()) ||
      !isGrouped(ranked(v).getShape(), ranked(q).getShape())) {
    obstacle = "heads that are not grouped in order";
    return false;
  }
  Value queries = asHeads(builder, loc, q), keys = asHeads(builder, loc, beforeCopiedHeads(k)),
        values = asHeads(builder, loc, beforeCopiedHeads(v));
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
  if (found->ofKeys && !withKeyScores(loc, *found, queries, keys)) {
    obstacle = "numbers of keys that are not one for each head of theirs";
    return false;
  }
  Value sinks = found->sinks ? parameter(found->sinks) : Value();
  if (sinks && ranked(sinks).getShape() != ArrayRef<int64_t>{heads}) {
    obstacle = "sinks that are not one for each head";
    return false;
  }
  Value slopes;
  if (size_t count = found->slopes.ofHeads.size()) {
    auto of = RankedTensorType::get({heads}, builder.getF32Type());
    SmallVector<float> numbers(found->slopes.ofHeads.begin(), found->slopes.ofHeads.end());
    if (int64_t(count) != heads) {
      obstacle = "slopes that are not one for each head";
      return false;
    }
    slopes = setting(loc, "slopes", of, DenseElementsAttr::get(of, ArrayRef(numbers)));
  }
  Value window = sight->window ? setting(loc, "window", builder.getIndexType(),
                                         builder.getI64IntegerAttr(sight->window))
                               : Value();
  FloatAttr cap = found->cap ? builder.getF32FloatAttr(float(*found->cap)) : FloatAttr();
  Value result = xf::AttentionOp::create(
      builder, loc, RankedTensorType::get({heads, width}, builder.getF32Type()), queries, keys,
      values, window, slopes, sinks, llvm::APFloat(float(found->scale)), cap,
      /*rounded=*/found->slopes.rounded != 0, sight->bidirectional, xf::RunAttr());
  bind(mixed, reshaped(loc, result, *type));
  return true;
}
