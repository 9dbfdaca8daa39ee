// Mixtures of experts: what is selected for a token, and what is computed for each selected expert.
#include "GraphValues.h"
#include "Raise.h"
#include "SlotOrder.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

static RankedTensorType ranked(Value value) { return cast<RankedTensorType>(value.getType()); }

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

Raiser::Results Raiser::topK(graph::CallOp call) {
  Value x = lookup(call.getTensor("self"));
  std::optional<int64_t> k = integerOf(call, "k");
  auto largest = dyn_cast_or_null<BoolAttr>(call.getArgument("largest"));
  if (!x || !k || call.getNumResults() != 2 || (largest && !largest.getValue()))
    return {};
  // xf has the selected in the order of their indices, and PyTorch in that of their values.
  if (ranked(x).getRank() != 1 || *k < 1 || *k > ranked(x).getDimSize(0) ||
      tokenDim(call.getTensor("self"), integerOf(call, "dim").value_or(-1)) != 0 ||
      !ignoresSlotOrder(call, axes))
    return {};
  Value selected = xf::TopKOp::create(builder, call.getLoc(), x, uint64_t(*k), 1, 1);
  return {xf::GatherOp::create(builder, call.getLoc(), x, selected), selected};
}

Raiser::Results Raiser::indexed(graph::CallOp call) {
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

/// The bank of `bank[indices]`, the indices, and whether each matrix is turned.
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
  if (!index || !index.getTensor("self"))
    return {};
  return {index.getTensor("self"), onlyOf(index, "indices"), turned};
}

Value Raiser::expertProduct(graph::CallOp call) {
  Value left = call.getTensor("self"), right = call.getTensor("other");
  for (bool isLeft : {true, false}) {
    auto [table, indices, turned] = bankOf(isLeft ? left : right);
    graph::StoredOp stored = storedOf(table);
    Value selected = indices ? asIndices(lookup(indices)) : Value();
    Value other = isLeft ? right : left, x = other && isData(other) ? lookup(other) : Value();
    if (!stored || !selected || !x || ranked(parameter(stored)).getRank() != 3)
      continue;
    // A column behind the matrix, or a row before it.
    auto type = cast<graph::SymbolicType>(other.getType());
    if (type.getRank() < 2 || type.getNumber(type.getRank() - (isLeft ? 1 : 2)) != 1)
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

/// Σ_j w_j y_j, where `value` is the product: the weights and the rows, both data.
Value Raiser::combined(graph::CallOp call, Value value) {
  graph::CallOp product = callOf(beforeCopies(value), "mul");
  std::optional<Sides> sides = product ? sidesOf(product) : std::nullopt;
  if (!sides || !sides->right || !isData(sides->left) || !isData(sides->right))
    return {};
  for (auto [rows, weights] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    Value y = lookup(rows), w = lookup(weights);
    if (!y || !w || ranked(y).getRank() != 2 || ranked(w).getRank() != 2 ||
        ranked(w).getDimSize(1) != 1 || ranked(w).getDimSize(0) != ranked(y).getDimSize(0))
      continue;
    auto vector = RankedTensorType::get({ranked(w).getDimSize(0)}, builder.getF32Type());
    return xf::CombineOp::create(builder, call.getLoc(), reshaped(call.getLoc(), w, vector), y);
  }
  return {};
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
  if (count > mostRows || (isMean && call.getArgument("dtype")))
    return {};
  Value sum = *along == 0 && !isMean ? combined(call, from) : Value();
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
