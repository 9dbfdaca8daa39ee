// Recurrences, which ctxc.export writes as one op (python/ctxc/_recurrences.py).
#include "GraphValues.h"
#include "Mask.h"
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

/// The size of an axis; none where it is no number.
static std::optional<int64_t> sizeOf(mlir::Value value, unsigned axis) {
  auto type = cast<graph::SymbolicType>(value.getType());
  return axis < type.getRank() ? type.getNumber(axis) : std::nullopt;
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
  const std::optional<int64_t> heads = sizeOf(call.getTensor("value"), 2),
                               rows = sizeOf(call.getTensor("key"), 3);
  if (!heads || !rows)
    return false;
  auto fits = [&](graph::StoredOp of) {
    auto shape = cast<RankedTensorType>(parameter(of).getType()).getShape();
    return shape == ArrayRef<int64_t>{*heads} || shape == ArrayRef<int64_t>{*heads, *rows};
  };
  // Decays that are a product of steps and rates.
  if (graph::CallOp product = callOf(beforeCopies(steps), "mul"))
    if (std::optional<Sides> sides = rates ? std::nullopt : sidesOf(product); sides && sides->right)
      for (auto [rate, step] : {std::pair(sides->left, sides->right), {sides->right, sides->left}})
        if (graph::StoredOp found = stored ? graph::StoredOp() : rateOf(rate);
            found && fits(found)) {
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
    if (each.from && axes.axis(each.from) != 1u)
      return false;
    else if (each.from && isData(each.from))
      wanted.push_back(each.from);
  std::string obstacle;
  if (!raiseTokens(wanted, obstacle))
    return false;
  Location loc = mixed.getLoc();
  for (Operand &each : operands) {
    if (!each.from)
      continue;
    SmallVector<int64_t> sizes = lastSizes(each.from, each.rank);
    auto type = RankedTensorType::get(sizes, builder.getF32Type());
    // A query or a key of a state that only decays may be one number.
    std::optional<double> number = sizes.empty() ? std::nullopt : numberIn(each.from, axes);
    Value known = number ? Value() : ofStored(each.from);
    if (number)
      known = xf::TimesOp::create(builder, loc, xf::createOnes(builder, loc, sizes),
                                  llvm::APFloat(float(*number)));
    if (sizes.empty() || !known ||
        cast<RankedTensorType>(known.getType()).getNumElements() != type.getNumElements())
      return false;
    each.raised = reshaped(loc, known, type);
  }
  if (stored && !fits(stored))
    return false;
  Value rate = stored ? parameter(stored) : Value();
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

bool Raiser::raiseDecayingMean(Value mixed) {
  auto call = mixed.getDefiningOp<graph::CallOp>();
  if (!call || call.getTarget() != "ctxc.decaying_mean.default")
    return false;
  auto type = tokenType(mixed, axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return false;
  }
  SmallVector<Value> wanted, operands;
  for (StringRef name : {"key", "value", "decay", "own"}) {
    Value from = call.getTensor(name);
    if (isData(from) && axes.axis(from) == axes.axis(mixed))
      wanted.push_back(from);
    else if (isData(from))
      return false;
  }
  std::string obstacle;
  if (!raiseTokens(wanted, obstacle))
    return false;
  Location loc = mixed.getLoc();
  for (StringRef name : {"key", "value", "decay", "own"}) {
    Value known = ofStored(call.getTensor(name));
    known = known ? repeated(loc, known, *type) : Value();
    if (!known)
      return false;
    operands.push_back(known);
  }
  bind(mixed, xf::DecayingMeanOp::create(builder, loc, operands[0], operands[1], operands[2],
                                         operands[3], xf::RunAttr()));
  return true;
}
