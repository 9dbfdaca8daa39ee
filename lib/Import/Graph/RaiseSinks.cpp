// Attention whose sinks a model applies behind it, as a factor.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// `value` before ops that add or remove axes of one entry.
static Value beforeAxes(Value value) {
  for (;;) {
    value = beforeCopies(value);
    graph::CallOp call;
    for (StringRef name : {"unsqueeze", "squeeze", "view", "reshape"})
      call = call ? call : callOf(value, name);
    if (!call)
      return value;
    auto several = [](Value v) {
      SmallVector<Attribute> sizes(cast<graph::SymbolicType>(v.getType()).getSizes());
      llvm::erase_if(sizes, [](Attribute size) {
        auto number = dyn_cast<IntegerAttr>(size);
        return number && number.getInt() == 1;
      });
      return sizes;
    };
    if (several(value) != several(call.getOperand(0)))
      return value;
    value = call.getOperand(0);
  }
}

/// The scores whose softmax weighs values in `attended`; null where that is no such sum.
static Value scoresOf(Value attended) {
  graph::CallOp product = callOf(beforeCopies(attended), "matmul");
  Value weights = product ? beforeCopies(product.getTensor("self")) : Value();
  graph::CallOp softmax = weights ? callOf(weights, "softmax") : graph::CallOp();
  return softmax ? beforeCopies(softmax.getTensor("self")) : Value();
}

/// b of σ(log Σ e^scores − b), one for each head.
static Value sinkOf(Value factor, Value scores) {
  graph::CallOp gate = callOf(beforeAxes(factor), "sigmoid");
  graph::CallOp difference =
      gate ? callOf(beforeCopies(gate.getOperand(0)), "sub") : graph::CallOp();
  std::optional<Sides> sides = difference ? sidesOf(difference) : std::nullopt;
  graph::CallOp all =
      sides && sides->right ? callOf(beforeAxes(sides->left), "logsumexp") : graph::CallOp();
  auto dims = all ? dyn_cast_or_null<ArrayAttr>(all.getArgument("dim")) : ArrayAttr();
  auto dim = dims && dims.size() == 1 ? dyn_cast<IntegerAttr>(dims[0]) : IntegerAttr();
  if (!dim || beforeCopies(all.getTensor("self")) != scores)
    return {};
  // Scores are (…, heads, tokens, tokens), and the sinks go along the heads.
  auto type = cast<graph::SymbolicType>(scores.getType());
  auto of = cast<graph::SymbolicType>(sides->right.getType());
  auto left = cast<graph::SymbolicType>(sides->left.getType());
  const unsigned rank = type.getRank();
  bool isLast = dim.getInt() == -1 || dim.getInt() == int64_t(rank) - 1;
  bool isOfHeads = rank >= 3 && left.getRank() + 1 == rank && of.getRank() >= 2 &&
                   of.getNumber(of.getRank() - 1) == 1 &&
                   of.getNumber(of.getRank() - 2) == type.getNumber(rank - 3);
  return isLast && isOfHeads ? beforeAxes(sides->right) : Value();
}

Value Raiser::withSinks(graph::CallOp call) {
  std::optional<Sides> sides = sidesOf(call);
  if (!sides || !sides->right || call.getBaseName() != "mul")
    return {};
  for (auto [attended, factor] :
       {std::pair(sides->left, sides->right), std::pair(sides->right, sides->left)}) {
    Value raised = lookup(attended), scores = scoresOf(attended);
    Value sinks = raised && scores ? sinkOf(factor, scores) : Value();
    graph::StoredOp stored = sinks ? storedOf(sinks) : graph::StoredOp();
    Value from = raised;
    while (auto shaped = stored ? from.getDefiningOp<xf::ReshapeOp>() : xf::ReshapeOp())
      from = shaped.getData();
    auto attention = stored ? from.getDefiningOp<xf::AttentionOp>() : xf::AttentionOp();
    if (!attention || attention.getSinks())
      continue;
    Value ofHeads = parameter(stored);
    int64_t heads = cast<RankedTensorType>(attention.getQuery().getType()).getDimSize(0);
    if (cast<RankedTensorType>(ofHeads.getType()).getShape() != ArrayRef<int64_t>{heads})
      continue;
    auto made = cast<xf::AttentionOp>(builder.clone(*attention));
    made.getSinksMutable().assign(ofHeads);
    return reshaped(call.getLoc(), made, raised.getType());
  }
  return {};
}
