// A causal convolution of each channel, as models spell it: padded in front alone, or at both ends,
// of which the last results are cut off.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// The one number of a list of arguments; `absent` where there is no list.
static std::optional<int64_t> onlyIn(graph::CallOp call, StringRef name, int64_t absent) {
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument(name));
  if (!call.getArgument(name))
    return absent;
  auto number = list && list.size() == 1 ? dyn_cast<IntegerAttr>(list[0]) : IntegerAttr();
  return number ? std::optional(number.getInt()) : std::nullopt;
}

/// `value` before axes of one entry come or go.
static Value beforeOnes(Value value) {
  for (;;) {
    value = beforeCopies(value);
    graph::CallOp call = callOf(value, "squeeze");
    call = call ? call : callOf(value, "unsqueeze");
    if (!call)
      return value;
    value = call.getTensor("self");
  }
}

/// The convolution whose first results, one for each token, are `mixed`.
static graph::CallOp findConvolution(Value mixed, unsigned last) {
  mixed = beforeCopies(mixed);
  if (graph::CallOp whole = callOf(mixed, "conv1d"))
    return whole;
  graph::CallOp cut = callOf(mixed, "slice");
  bool isFirst = cut && integerOf(cut, "start").value_or(0) == 0 &&
                 integerOf(cut, "step").value_or(1) == 1 &&
                 (integerOf(cut, "dim") == int64_t(last) || integerOf(cut, "dim") == -1);
  return isFirst ? callOf(beforeCopies(cut.getTensor("self")), "conv1d") : graph::CallOp();
}

/// What `x` is in front of which `count` zeros have been put for tokens; null where it is not so.
static Value beforeZeros(Value x, int64_t count) {
  graph::CallOp pad = callOf(x, "constant_pad_nd");
  pad = pad ? pad : callOf(x, "pad");
  auto sizes = pad ? dyn_cast_or_null<ArrayAttr>(pad.getArgument("pad")) : ArrayAttr();
  if (!sizes || sizes.size() != 2 || numberOf(pad, "value").value_or(0) != 0)
    return {};
  auto front = dyn_cast<IntegerAttr>(sizes[0]), back = dyn_cast<IntegerAttr>(sizes[1]);
  bool isCausal = front && back && front.getInt() == count && back.getInt() == 0;
  return isCausal ? pad.getTensor("self") : Value();
}

bool Raiser::raiseConvolution(Value mixed) {
  auto type = tokenType(mixed, axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return false;
  }
  unsigned last = cast<graph::SymbolicType>(mixed.getType()).getRank() - 1;
  graph::CallOp call = axes.axis(mixed) == last ? findConvolution(mixed, last) : graph::CallOp();
  if (!call || type->getRank() != 1 || onlyIn(call, "stride", 1) != 1 ||
      onlyIn(call, "dilation", 1) != 1)
    return false;
  graph::StoredOp stored = storedOf(beforeOnes(call.getTensor("weight")));
  auto of = stored ? cast<graph::SymbolicType>(stored.getType()) : graph::SymbolicType();
  int64_t channels = type->getNumElements();
  if (!stored || stored.getFixed() || parameters.count(stored) || of.getRank() < 2 ||
      of.getNumber(0) != channels || (of.getRank() == 3 && of.getNumber(1) != 1) ||
      of.getRank() > 3 || integerOf(call, "groups").value_or(1) != channels)
    return false;
  int64_t taps = *of.getNumber(of.getRank() - 1);
  std::optional<int64_t> padding = onlyIn(call, "padding", 0);
  Value x = call.getTensor("input");
  if (padding == 0)
    x = beforeZeros(beforeCopies(x), taps - 1);
  else if (padding != taps - 1)
    return false;
  std::string obstacle;
  if (taps < 2 || !x || !axes.axis(x) || !raiseTokens(x, obstacle) || lookup(x).getType() != *type)
    return false;
  std::string name = naming(stored.getName());
  Location loc = mixed.getLoc();
  Value weight = parameters[stored] =
      xf::ParamOp::create(builder, NameLoc::get(builder.getStringAttr(name)),
                          RankedTensorType::get({channels, taps}, of.getElementType()), name,
                          /*frozen=*/false, /*constant=*/false);
  Value y = xf::ConvOp::create(builder, loc, weight, lookup(x), xf::RunAttr());
  if (Value bias = call.getTensor("bias"))
    y = withBias(loc, y, bias);
  if (!y)
    return false;
  bind(mixed, y);
  return true;
}

/// By how many tokens `pad` moves those of its operand back, in front of which it puts zeros; none
/// where it does something else.
static std::optional<int64_t> distanceOf(graph::CallOp pad, const TokenAxes &axes) {
  auto sizes = dyn_cast_or_null<ArrayAttr>(pad.getArgument("pad"));
  auto mode = dyn_cast_or_null<StringAttr>(pad.getArgument("mode"));
  Value x = pad.getTensor("self");
  std::optional<unsigned> axis = x ? axes.axis(x) : std::nullopt;
  if (!sizes || !axis || numberOf(pad, "value").value_or(0) != 0 ||
      (mode && mode.getValue() != "constant"))
    return std::nullopt;
  // Pairs from the last axis on, of numbers in front and behind.
  size_t pair = 2 * (cast<graph::SymbolicType>(x.getType()).getRank() - 1 - *axis);
  std::optional<int64_t> distance;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    auto number = dyn_cast<IntegerAttr>(size);
    if (!number || (i / 2 * 2 != pair && number.getInt() != 0))
      return std::nullopt;
    if (i == pair)
      distance = number.getInt();
    if (i == pair + 1 && number.getInt() != -distance.value_or(0))
      return std::nullopt;
  }
  return sizes.size() > pair + 1 ? distance : std::nullopt;
}

bool Raiser::raiseShift(Value mixed) {
  constexpr int64_t farthest = 16;
  graph::CallOp pad = callOf(mixed, "constant_pad_nd");
  pad = pad ? pad : callOf(mixed, "pad");
  std::optional<int64_t> distance = pad ? distanceOf(pad, axes) : std::nullopt;
  auto type = tokenType(mixed, axes);
  std::string obstacle;
  if (!type || !distance || *distance < 1 || *distance > farthest || type->getRank() != 1 ||
      !raiseTokens(pad.getTensor("self"), obstacle) ||
      lookup(pad.getTensor("self")).getType() != *type) {
    llvm::consumeError(type.takeError());
    return false;
  }
  // A convolution whose only tap that counts is the first.
  Location loc = mixed.getLoc();
  auto of = RankedTensorType::get({type->getNumElements(), *distance + 1}, builder.getF32Type());
  SmallVector<float> taps(of.getNumElements(), 0);
  for (size_t i = 0; i < taps.size(); i += *distance + 1)
    taps[i] = 1;
  Value weight = setting(loc, "shift", of, DenseElementsAttr::get(of, ArrayRef(taps)));
  bind(mixed,
       xf::ConvOp::create(builder, loc, weight, lookup(pad.getTensor("self")), xf::RunAttr()));
  return true;
}
