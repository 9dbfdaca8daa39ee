// Mixtures of experts: what is selected for a token, and what is computed for each selected expert.
#include "GraphValues.h"
#include "Raise.h"
#include "SlotOrder.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// Sums and products of so many rows are written out.
static constexpr int64_t mostRows = 64;

/// The indices that `value` raises to; null where they are no vector of them.
static Value asIndices(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  return type && type.getRank() == 1 && type.getElementType().isInteger(32) ? value : Value();
}

/// The one tensor of a list; null where it has others.
static Value onlyOf(graph::CallOp call, StringRef name) {
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument(name));
  auto operand =
      list && list.size() == 1 ? dyn_cast<graph::OperandAttr>(list[0]) : graph::OperandAttr();
  return operand ? call.getOperand(operand.getIndex()) : Value();
}

namespace {
/// What is selected among the entries of the best groups alone.
struct Grouped {
  Value scores;
  int64_t groups = 1, keep = 1;
};
} // namespace

/// `value` before ops that keep its numbers, or repeat each of them.
static Value beforeRepeats(Value value) {
  while (auto call = value ? value.getDefiningOp<graph::CallOp>() : graph::CallOp()) {
    const graph::AtenOp *op = graph::atenOp(call);
    if (!op || (op->kind != graph::AtenKind::Copies && op->kind != graph::AtenKind::Views))
      break;
    value = call.getOperand(0);
  }
  return value;
}

/// The scores that are 0, or nothing, outside of the groups whose two best entries have the largest
/// sums: masked_fill(s, ¬(1 at top_k(Σ top_2(s by groups)))); none where `value` is written
/// otherwise.
static std::optional<Grouped> groupedOf(Value value) {
  graph::CallOp fill = callOf(value, "masked_fill");
  std::optional<double> by = fill ? numberOf(fill, "value") : std::nullopt;
  Value flag = fill ? fill.getTensor("mask") : Value();
  graph::CallOp negation = callOf(flag, "bitwise_not");
  negation = negation ? negation : callOf(flag, "logical_not");
  graph::CallOp marks =
      negation ? callOf(beforeRepeats(negation.getOperand(0)), "scatter") : graph::CallOp();
  if (!by || *by > 0 || !marks || numberOf(marks, "value") != 1.0)
    return std::nullopt;
  Value index = marks.getTensor("index");
  graph::CallOp best = callOf(index, "topk");
  graph::CallOp sum = best ? callOf(best.getOperand(0), "sum") : graph::CallOp();
  graph::CallOp two = sum ? callOf(sum.getOperand(0), "topk") : graph::CallOp();
  if (!two || index != best.getResult(1) || sum.getOperand(0) != two.getResult(0) ||
      integerOf(two, "k") != 2)
    return std::nullopt;
  Value scores = fill.getTensor("self");
  Value parts = two.getOperand(0);
  auto type = cast<graph::SymbolicType>(parts.getType());
  std::optional<int64_t> groups =
      type.getRank() < 2 ? std::nullopt : type.getNumber(type.getRank() - 2);
  std::optional<int64_t> keep = integerOf(best, "k");
  if (!groups || !keep || *keep < 1 || *keep > *groups ||
      beforeRepeats(parts) != beforeRepeats(scores))
    return std::nullopt;
  return Grouped{scores, *groups, *keep};
}

Raiser::Results Raiser::topK(graph::CallOp call) {
  std::optional<Grouped> grouped = groupedOf(beforeCopies(call.getTensor("self")));
  Value x = lookup(grouped ? grouped->scores : call.getTensor("self"));
  std::optional<int64_t> k = integerOf(call, "k");
  auto largest = dyn_cast_or_null<BoolAttr>(call.getArgument("largest"));
  if (!x || !k || call.getNumResults() != 2 || (largest && !largest.getValue()))
    return {};
  // xf has the selected in the order of their indices, and PyTorch in that of their values.
  if (ranked(x).getRank() != 1 || *k < 1 || *k > ranked(x).getDimSize(0) ||
      tokenDim(call.getTensor("self"), integerOf(call, "dim").value_or(-1)) != 0 ||
      !ignoresSlotOrder(call, axes))
    return {};
  int64_t groups = grouped ? grouped->groups : 1, keep = grouped ? grouped->keep : 1;
  int64_t size = ranked(x).getDimSize(0) / groups;
  if (ranked(x).getDimSize(0) % groups || (grouped && (size < 2 || *k > keep * size)))
    return {};
  Value selected =
      xf::TopKOp::create(builder, call.getLoc(), x, uint64_t(*k), uint64_t(groups), uint64_t(keep));
  return {xf::GatherOp::create(builder, call.getLoc(), x, selected), selected};
}

/// The largest entry of a vector, and its index.
Raiser::Results Raiser::largest(graph::CallOp call) {
  Value self = call.getTensor("self"), x = lookup(self);
  std::optional<int64_t> dim = integerOf(call, "dim");
  if (!x || !dim || ranked(x).getRank() != 1 || tokenDim(self, *dim) != 0)
    return {};
  Value selected = xf::TopKOp::create(builder, call.getLoc(), x, uint64_t(1));
  if (call.getNumResults() == 1)
    return {selected};
  return {xf::GatherOp::create(builder, call.getLoc(), x, selected), selected};
}

/// Neighbouring entries along an axis, which constant indices name.
Raiser::Results Raiser::chosen(graph::CallOp call) {
  Value self = call.getTensor("self"), x = lookup(self);
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"));
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !x || !list || list.empty()) {
    llvm::consumeError(type.takeError());
    return {};
  }
  auto operand = dyn_cast<graph::OperandAttr>(list[list.size() - 1]);
  auto isNone = [](Attribute each) { return isa<UnitAttr>(each); };
  Value index = operand && llvm::all_of(list.getValue().drop_back(), isNone)
                    ? call.getOperand(operand.getIndex())
                    : Value();
  while (graph::CallOp copy = callOf(index, "clone"))
    index = copy.getOperand(0);
  auto stored = index ? index.getDefiningOp<graph::StoredOp>() : graph::StoredOp();
  std::optional<std::vector<double>> places = stored ? writtenNumbers(stored) : std::nullopt;
  std::optional<int64_t> dim = tokenDim(self, int64_t(list.size()) - 1);
  if (!places || places->empty() || !dim ||
      cast<graph::SymbolicType>(index.getType()).getRank() != 1)
    return {};
  int64_t length = ranked(x).getDimSize(*dim), count = places->size();
  int64_t from = int64_t(places->front()) + (places->front() < 0 ? length : 0);
  for (int64_t i = 0; i < count; ++i)
    if ((*places)[i] != places->front() + double(i))
      return {};
  SmallVector<int64_t> shape(ranked(x).getShape());
  shape[*dim] = count;
  auto part = RankedTensorType::get(shape, builder.getF32Type());
  if (from < 0 || from + count > length || part.getNumElements() != type->getNumElements() ||
      !isa<Float32Type>(ranked(x).getElementType()))
    return {};
  Value slice = xf::SliceOp::create(builder, call.getLoc(), part, x, from, *dim);
  return {reshaped(call.getLoc(), slice, *type)};
}

Raiser::Results Raiser::indexed(graph::CallOp call) {
  if (Value permuted = isData(call.getTensor("self")) ? permutedByList(call) : Value())
    return {permuted};
  if (isData(call.getTensor("self")))
    return chosen(call);
  if (Value made = rowOf(call.getLoc(), call.getTensor("self"), onlyOf(call, "indices")))
    return {made};
  graph::StoredOp stored = storedOf(call.getTensor("self"));
  Value selected = asIndices(lookup(onlyOf(call, "indices")));
  if (!stored || !selected || ranked(parameter(stored)).getRank() > 2)
    return {};
  return {xf::GatherOp::create(builder, call.getLoc(), parameter(stored), selected)};
}

Raiser::Results Raiser::gathered(graph::CallOp call) {
  Value x = isData(call.getTensor("self")) ? lookup(call.getTensor("self")) : Value();
  Value selected = asIndices(lookup(call.getTensor("index")));
  if (!x || !selected || ranked(x).getRank() != 1 ||
      tokenDim(call.getTensor("self"), integerOf(call, "dim").value_or(0)) != 0)
    return {};
  return {xf::GatherOp::create(builder, call.getLoc(), x, selected)};
}

/// The bank of `bank[indices]`, the indices, and whether each matrix is turned. Without indices it
/// is the whole bank.
static std::tuple<Value, Value, bool> bankOf(Value value) {
  bool turned = false;
  value = beforeCopies(value);
  if (graph::CallOp turn = callOf(value, "transpose")) {
    SmallVector<int64_t> order = orderOf(turn);
    int64_t rank = order.size();
    if (rank < 2 || order[rank - 1] != rank - 2 || order[rank - 2] != rank - 1)
      return {};
    turned = true;
    value = beforeCopies(turn.getOperand(0));
  }
  graph::CallOp index = callOf(value, "index");
  if (value.getDefiningOp<graph::StoredOp>())
    return {value, {}, turned};
  if (!index || !index.getTensor("self"))
    return {};
  return {index.getTensor("self"), onlyOf(index, "indices"), turned};
}

/// The indices of all experts.
Value Raiser::each(Location loc, int64_t count) {
  return xf::TopKOp::create(builder, loc, xf::createOnes(builder, loc, {count}), uint64_t(count));
}

/// W_e x and x W_e of one matrix of a bank, by a number; null where `weight` is no such.
Value Raiser::oneOfBank(Location loc, Value weight, bool turned, Value x) {
  graph::CallOp select = callOf(weight, "select");
  graph::StoredOp stored = select ? storedOf(select.getTensor("self")) : graph::StoredOp();
  std::optional<int64_t> e = select ? integerOf(select, "index") : std::nullopt;
  if (!stored || !e || integerOf(select, "dim").value_or(0) != 0 || ranked(x).getRank() != 1 ||
      ranked(parameter(stored)).getRank() != 3 || numbersOf(stored))
    return {};
  ArrayRef<int64_t> shape = ranked(parameter(stored)).getShape();
  *e += *e < 0 ? shape[0] : 0;
  if (*e < 0 || *e >= shape[0] || shape[turned ? 1 : 2] != ranked(x).getDimSize(0))
    return {};
  // The index of the one entry that is not 0.
  SmallVector<float> only(shape[0], 0);
  only[*e] = 1;
  auto vector = [&](int64_t size) { return RankedTensorType::get({size}, builder.getF32Type()); };
  Value scores =
      setting(loc, ("only_" + Twine(*e) + "_of_" + Twine(shape[0])).str(), vector(shape[0]),
              DenseElementsAttr::get(vector(shape[0]), ArrayRef(only)));
  Value index = xf::TopKOp::create(builder, loc, scores, uint64_t(1));
  Value y = xf::ExpertLinearOp::create(builder, loc, parameter(stored), index, x, turned);
  return reshaped(loc, y, vector(shape[turned ? 2 : 1]));
}

Value Raiser::expertProduct(graph::CallOp call) {
  Value left = call.getTensor("self"), right = call.getTensor("other");
  for (bool isLeft : {true, false}) {
    auto [table, indices, turned] = bankOf(isLeft ? left : right);
    graph::StoredOp stored = storedOf(table);
    Value other = isLeft ? right : left, x = other && isData(other) ? lookup(other) : Value();
    if (!stored || !x || ranked(parameter(stored)).getRank() != 3 ||
        !isa<Float32Type>(ranked(x).getElementType()))
      continue;
    Value selected = indices ? asIndices(lookup(indices))
                             : each(call.getLoc(), ranked(parameter(stored)).getDimSize(0));
    // A column behind the matrix, or a row before it, of which each token has one.
    auto type = cast<graph::SymbolicType>(other.getType());
    int64_t single = type.getRank() - (isLeft ? 1 : 2);
    if (!selected || single < 0 ||
        (type.getNumber(single) != 1 && axes.axis(other) != unsigned(single)))
      continue;
    bool transposed = isLeft == turned;
    ArrayRef<int64_t> bank = ranked(parameter(stored)).getShape();
    int64_t slots = ranked(selected).getDimSize(0), in = bank[transposed ? 1 : 2],
            out = bank[transposed ? 2 : 1], entries = ranked(x).getNumElements();
    auto element = builder.getF32Type();
    auto result = tokenType(call.getResult(0), axes);
    if (!result || result->getNumElements() != slots * out ||
        (entries != in && entries != slots * in)) {
      llvm::consumeError(result.takeError());
      continue;
    }
    bool isShared = entries == in && (slots > 1 || ranked(x).getRank() < 2);
    auto shape = isShared ? RankedTensorType::get({in}, element)
                          : RankedTensorType::get({slots, in}, element);
    // Sizes alone do not say whether (k, in) is a row for each slot, or one row turned.
    if (!isShared && ranked(x).getDimSize(0) != slots)
      continue;
    Value y = xf::ExpertLinearOp::create(builder, call.getLoc(), parameter(stored), selected,
                                         reshaped(call.getLoc(), x, shape), transposed);
    return reshaped(call.getLoc(), y, *result);
  }
  return {};
}

/// Σ_j w_j y_j of rows y_j: term by term where each is a value of its own.
Value Raiser::weighted(Location loc, Value w, Value y) {
  auto turn = y.getDefiningOp<xf::TransposeOp>();
  auto rows = (turn ? turn.getData() : y).getDefiningOp<xf::ConcatOp>();
  int64_t count = ranked(w).getDimSize(0);
  if (!rows || ranked(rows).getRank() != 2 || rows.getAlong() != (turn ? 1 : 0) ||
      int64_t(rows.getParts().size()) != count)
    return xf::CombineOp::create(builder, loc, w, y);
  Value sum;
  for (auto [j, part] : llvm::enumerate(rows.getParts())) {
    auto one = RankedTensorType::get({1}, builder.getF32Type());
    auto vector = RankedTensorType::get({ranked(part).getNumElements()}, builder.getF32Type());
    Value weight = xf::SliceOp::create(builder, loc, one, w, j, 0);
    Value term = xf::MulOp::create(builder, loc, reshaped(loc, part, vector), weight);
    sum = sum ? Value(xf::AddOp::create(builder, loc, sum, term)) : term;
  }
  return sum;
}

/// Σ_j w_j y_j, where `value` is the product: the weights and the rows, both data.
Value Raiser::combined(graph::CallOp call, Value value) {
  graph::CallOp product = callOf(beforeCopies(value), "mul");
  std::optional<Sides> sides = product ? sidesOf(product) : std::nullopt;
  if (!sides || !sides->right || !isData(sides->left) || !isData(sides->right))
    return {};
  for (auto [rows, weights] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    Value y = lookup(rows), w = lookup(weights);
    if (!y || !w || ranked(y).getRank() < 2 || ranked(w).getRank() != ranked(y).getRank() ||
        ranked(w).getDimSize(0) != ranked(y).getDimSize(0) ||
        ranked(w).getDimSize(0) != ranked(w).getNumElements())
      continue;
    const int64_t count = ranked(w).getDimSize(0);
    auto vector = RankedTensorType::get({count}, builder.getF32Type()),
         matrix = RankedTensorType::get({count, ranked(y).getNumElements() / count},
                                        builder.getF32Type());
    return weighted(call.getLoc(), reshaped(call.getLoc(), w, vector),
                    reshaped(call.getLoc(), y, matrix));
  }
  return {};
}

/// A B of two matrices of the token: each row of A weighs the rows of B.
Value Raiser::productByRows(Location loc, Value a, Value b, RankedTensorType type) {
  const int64_t rows = type.getDimSize(0), inner = ranked(a).getNumElements() / rows;
  Type element = builder.getF32Type();
  a = reshaped(loc, a, RankedTensorType::get({rows, inner}, element));
  b = reshaped(loc, b, RankedTensorType::get({inner, type.getDimSize(1)}, element));
  SmallVector<Value> made;
  for (int64_t i = 0; i < rows; ++i) {
    Value row =
        xf::SliceOp::create(builder, loc, RankedTensorType::get({1, inner}, element), a, i, 0);
    row = reshaped(loc, row, RankedTensorType::get({inner}, element));
    made.push_back(reshaped(loc, weighted(loc, row, b),
                            RankedTensorType::get({1, type.getDimSize(1)}, element)));
  }
  return xf::ConcatOp::create(builder, loc, type, made, 0);
}

/// The same where one of them may be a vector, which then weighs alone.
Value Raiser::productOfRows(graph::CallOp call) {
  Value left = call.getTensor("self"), right = call.getTensor("other");
  auto sizes = [](Value value) {
    auto type = cast<graph::SymbolicType>(value.getType());
    int64_t rank = type.getRank();
    return rank < 2 ? std::pair(std::optional<int64_t>(), std::optional<int64_t>())
                    : std::pair(type.getNumber(rank - 2), type.getNumber(rank - 1));
  };
  if (!left || !right || !isData(left) || !isData(right))
    return {};
  Value a = lookup(left), b = lookup(right);
  auto [rows, inner] = sizes(left);
  auto [same, columns] = sizes(right);
  auto result = tokenType(call.getResult(0), axes);
  if (!result || !a || !b || !rows || !inner || inner != same || !columns ||
      result->getNumElements() != *rows * *columns ||
      ranked(a).getNumElements() != *rows * *inner ||
      ranked(b).getNumElements() != *inner * *columns || !isFloat(a) || !isFloat(b) ||
      (*rows > mostRows && *columns != 1)) {
    llvm::consumeError(result.takeError());
    return {};
  }
  bool isLeft = *rows == 1;
  Location loc = call.getLoc();
  if (!isLeft && *columns != 1)
    return reshaped(
        loc,
        productByRows(loc, a, b, RankedTensorType::get({*rows, *columns}, builder.getF32Type())),
        *result);
  Value w = isLeft ? a : b, y = isLeft ? b : a;
  int64_t width = isLeft ? *columns : *rows;
  w = reshaped(loc, w, RankedTensorType::get({*inner}, builder.getF32Type()));
  auto turn = y.getDefiningOp<xf::TransposeOp>();
  auto type = RankedTensorType::get({*inner, width}, builder.getF32Type());
  if (isLeft)
    y = reshaped(loc, y, type);
  else if (turn && turn.getData().getType() == type && turn.getOrder() == ArrayRef<int64_t>{1, 0})
    y = turn.getData();
  else
    y = transposed(loc, y, {width, *inner}, {1, 0});
  return reshaped(loc, weighted(loc, w, y), *result);
}

Raiser::Results Raiser::summed(graph::CallOp call) {
  Value from = call.getTensor("self"), x = lookup(from);
  auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dim"));
  auto dim = dims && dims.size() == 1 ? dyn_cast<IntegerAttr>(dims[0]) : IntegerAttr();
  std::optional<int64_t> along = dim ? tokenDim(from, dim.getInt()) : std::nullopt;
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !x || !along || !isa<Float32Type>(ranked(x).getElementType())) {
    llvm::consumeError(type.takeError());
    return {};
  }
  int64_t count = ranked(x).getDimSize(*along);
  bool isMean = call.getBaseName() == "mean";
  // Many numbers, and those that do not depend on what is read, are one product.
  const bool isVector = ranked(x).getRank() == 1;
  const bool isProduct = isVector && (count > mostRows || !axes.isData(from));
  if ((count > mostRows && !isProduct) || (isMean && call.getArgument("dtype")))
    return {};
  Value sum = *along == 0 && !isMean ? combined(call, from) : Value();
  if (!sum && isProduct)
    sum = xf::CombineOp::create(
        builder, call.getLoc(), xf::createOnes(builder, call.getLoc(), {count}),
        reshaped(call.getLoc(), x, RankedTensorType::get({count, 1}, builder.getF32Type())));
  SmallVector<int64_t> shape(ranked(x).getShape());
  shape[*along] = 1;
  auto row = RankedTensorType::get(shape, builder.getF32Type());
  if (!sum)
    for (int64_t i = 0; i < count; ++i) {
      Value next = xf::SliceOp::create(builder, call.getLoc(), row, x, i, *along);
      sum = sum ? Value(xf::AddOp::create(builder, call.getLoc(), sum, next)) : next;
    }
  if (isMean)
    sum = xf::TimesOp::create(builder, call.getLoc(), sum, llvm::APFloat(1.0f / float(count)));
  if (ranked(sum).getNumElements() != type->getNumElements())
    return {};
  return {reshaped(call.getLoc(), sum, *type)};
}
