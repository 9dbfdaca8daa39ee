// Recurrences, which ctxc.export writes as one op (python/ctxc/_recurrences.py).
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// The last `count` sizes of a value; empty where one is no number.
static SmallVector<int64_t> lastSizes(mlir::Value value, unsigned count) {
  auto type = cast<graph::SymbolicType>(value.getType());
  SmallVector<int64_t> sizes;
  for (unsigned i = type.getRank() - count; i < type.getRank(); ++i) {
    std::optional<int64_t> size = type.getNumber(i);
    if (!size)
      return {};
    sizes.push_back(*size);
  }
  return sizes;
}

/// The tensor A of which `value` is −exp(A); null where it is none.
graph::StoredOp Raiser::rateOf(Value value) const {
  graph::CallOp negative = value ? callOf(beforeCopies(value), "neg") : graph::CallOp();
  graph::CallOp power =
      negative ? callOf(beforeCopies(negative.getTensor("self")), "exp") : graph::CallOp();
  return power ? storedOf(power.getTensor("self")) : graph::StoredOp();
}

bool Raiser::raiseLinearAttention(Value mixed) {
  auto call = mixed.getDefiningOp<graph::CallOp>();
  if (!call || call.getTarget() != "ctxc.linear_attention.default")
    return false;
  Value steps = call.getTensor("decay"), rates = call.getTensor("rates");
  graph::StoredOp stored = rateOf(rates);
  if (rates && !stored)
    return false;
  // Decays that are a product of steps and rates.
  if (graph::CallOp product = callOf(beforeCopies(steps), "mul"))
    if (std::optional<Sides> sides = rates ? std::nullopt : sidesOf(product); sides && sides->right)
      for (auto [rate, step] : {std::pair(sides->left, sides->right), {sides->right, sides->left}})
        if (graph::StoredOp found = stored ? graph::StoredOp() : rateOf(rate)) {
          stored = found;
          steps = step;
        }

  struct Operand {
    Value from;
    unsigned rank;
    Value raised = {};
  };
  const unsigned ofDecay = cast<graph::SymbolicType>(steps.getType()).getRank() - 2;
  Operand operands[] = {{call.getTensor("query"), 2},
                        {call.getTensor("key"), 2},
                        {call.getTensor("value"), 2},
                        {steps, ofDecay},
                        {call.getTensor("delta"), 1}};
  SmallVector<Value> wanted;
  for (const Operand &each : operands)
    if (each.from && axes.axis(each.from) == 1u)
      wanted.push_back(each.from);
    else if (each.from)
      return false;
  std::string obstacle;
  if (!raiseTokens(wanted, obstacle))
    return false;
  Location loc = mixed.getLoc();
  for (Operand &each : operands) {
    if (!each.from)
      continue;
    SmallVector<int64_t> sizes = lastSizes(each.from, each.rank);
    auto type = RankedTensorType::get(sizes, builder.getF32Type());
    Value known = lookup(each.from);
    if (sizes.empty() ||
        cast<RankedTensorType>(known.getType()).getNumElements() != type.getNumElements())
      return false;
    each.raised = reshaped(loc, known, type);
  }
  Value rate = stored ? parameter(stored) : Value();
  auto heads = cast<RankedTensorType>(operands[2].raised.getType()).getShape()[0];
  if (rate) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(rate.getType()).getShape();
    const int64_t rows = cast<RankedTensorType>(operands[1].raised.getType()).getShape()[1];
    if (shape != ArrayRef<int64_t>{heads} && shape != ArrayRef<int64_t>{heads, rows})
      return false;
  }
  auto type = tokenType(mixed, axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return false;
  }
  Value made = xf::LinearAttentionOp::create(builder, loc, operands[0].raised, operands[1].raised,
                                             operands[2].raised, operands[3].raised, rate,
                                             operands[4].raised, xf::RunAttr());
  bind(mixed, reshaped(loc, made, *type));
  return true;
}
