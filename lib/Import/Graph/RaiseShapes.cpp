// Ops that move a token's numbers, or take some of them.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

Value Raiser::reshaped(Location loc, Value value, Type type) {
  return value.getType() == type ? value : xf::ReshapeOp::create(builder, loc, type, value);
}

Value Raiser::repeated(Location loc, Value value, RankedTensorType type, bool tiles) {
  // Few rows are put one behind the other, such as a gate for each entry of its head.
  constexpr int64_t mostRows = 256;
  SmallVector<int64_t> shape(ranked(value).getShape());
  ArrayRef<int64_t> to = type.getShape();
  if (shape.size() > to.size())
    return {};
  shape.insert(shape.begin(), to.size() - shape.size(), 1);
  value = reshaped(loc, value, RankedTensorType::get(shape, builder.getF32Type()));
  for (size_t axis = to.size(); axis-- > 0;) {
    if (shape[axis] == to[axis])
      continue;
    const int64_t count = to[axis] / shape[axis];
    if (to[axis] % shape[axis] || (shape[axis] != 1 && !tiles) ||
        (count > mostRows && (axis || shape[axis] != 1)))
      return {};
    const bool isOne = shape[axis] == 1;
    shape[axis] = to[axis];
    auto next = RankedTensorType::get(shape, builder.getF32Type());
    if (axis == 0 && isOne)
      value = xf::BroadcastOp::create(builder, loc, next, value);
    else
      value = xf::ConcatOp::create(builder, loc, next, SmallVector<Value>(count, value), axis);
  }
  return value;
}

bool Raiser::matchShapes(Location loc, Value &a, Value &b) {
  if (!isFloat(a) || !isFloat(b))
    return false;
  ArrayRef<int64_t> x = ranked(a).getShape(), y = ranked(b).getShape();
  SmallVector<int64_t> both;
  for (size_t back = 1; back <= std::max(x.size(), y.size()); ++back) {
    int64_t p = back <= x.size() ? x[x.size() - back] : 1,
            q = back <= y.size() ? y[y.size() - back] : 1;
    if (p != q && p != 1 && q != 1)
      return false;
    both.insert(both.begin(), std::max(p, q));
  }
  auto type = RankedTensorType::get(both, builder.getF32Type());
  a = repeated(loc, a, type);
  b = a ? repeated(loc, b, type) : Value();
  return a && b;
}

Raiser::Results Raiser::sameOrder(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !x) {
    llvm::consumeError(type.takeError());
    return {};
  }
  // view.dtype reads the same bits as other numbers.
  bool isRow = elementOf(call.getOperand(0)) == elementOf(call.getResult(0));
  if (!isRow || (x.getType() != *type &&
                 (!isFloat(x) || ranked(x).getNumElements() != type->getNumElements())))
    return {};
  return {reshaped(call.getLoc(), x, *type)};
}

Value Raiser::transposed(Location loc, Value value, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> order) {
  value = reshaped(loc, value, RankedTensorType::get(shape, builder.getF32Type()));
  return xf::TransposeOp::create(builder, loc, value, order);
}

Raiser::Results Raiser::permuted(graph::CallOp call) {
  // A token's numbers stay in their order where its axes of several entries do.
  auto type = cast<graph::SymbolicType>(call.getOperand(0).getType());
  std::optional<unsigned> axis = axes.axis(type);
  int64_t last = -1;
  SmallVector<int64_t> order = orderOf(call);
  if (order.empty())
    return {};
  bool isSame = true;
  SmallVector<int64_t> several; // axes, in the result's order
  for (int64_t from : order) {
    if (from == axis || type.getNumber(from) == 1)
      continue;
    isSame &= from > last;
    last = from;
    several.push_back(from);
  }
  if (isSame)
    return sameOrder(call);
  Value x = lookup(call.getOperand(0));
  auto made = tokenType(call.getResult(0), axes);
  if (!made || !x || !isFloat(x)) {
    llvm::consumeError(made.takeError());
    return {};
  }
  SmallVector<int64_t> sorted(several), sizes, places;
  llvm::sort(sorted);
  for (int64_t from : sorted)
    sizes.push_back(*type.getNumber(from));
  for (int64_t from : several)
    places.push_back(llvm::find(sorted, from) - sorted.begin());
  return {reshaped(call.getLoc(), transposed(call.getLoc(), x, sizes, places), *made)};
}

Raiser::Results Raiser::copied(graph::CallOp call) {
  if (Value rows = oneHot(call))
    return {rows};
  Value x = lookup(call.getOperand(0));
  auto type = tokenType(call.getResult(0), axes);
  auto train = dyn_cast_or_null<BoolAttr>(call.getArgument("train"));
  bool isCopy = type && x && x.getType() == *type && (!train || !train.getValue());
  llvm::consumeError(type.takeError());
  auto from = cast<graph::SymbolicType>(call.getOperand(0).getType()).getElementType();
  auto to = cast<graph::SymbolicType>(call.getResult(0).getType()).getElementType();
  // An integer of fewer bits, or a flag, is another number.
  isCopy &= from == to || (isa<FloatType>(from) && isa<FloatType>(to));
  if (!isCopy)
    return {};
  auto narrow = dyn_cast<FloatType>(to), wide = dyn_cast<FloatType>(from);
  bool rounds = narrow && wide && narrow.getFPMantissaWidth() < wide.getFPMantissaWidth() &&
                arithmetic(call) != narrow;
  if (!rounds || !(narrow.isBF16() || narrow.isF16()))
    return {x};
  return {xf::RoundOp::create(builder, call.getLoc(), x,
                              narrow.isBF16() ? xf::NarrowType::bf16 : xf::NarrowType::f16)};
}

Raiser::Results Raiser::expanded(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !x) {
    llvm::consumeError(type.takeError());
    return {};
  }
  if (x.getType() == *type)
    return {x};
  const bool tiles = call.getBaseName() != "expand";
  Value result = isFloat(x) ? repeated(call.getLoc(), x, *type, tiles) : Value();
  return result ? Results{result} : Results{};
}

/// Every nth entry along an axis whose length is a multiple of n.
Raiser::Results Raiser::everyOther(graph::CallOp call, Value x, int64_t dim,
                                   RankedTensorType type) {
  int64_t step = *integerOf(call, "step"), from = integerOf(call, "start").value_or(0);
  SmallVector<int64_t> shape(ranked(x).getShape());
  int64_t others = ranked(x).getNumElements() / shape[dim];
  if (step < 1 || from < 0 || from >= step || shape[dim] % step ||
      type.getNumElements() != others * (shape[dim] / step))
    return {};
  shape[dim] /= step;
  shape.insert(shape.begin() + dim + 1, step);
  x = reshaped(call.getLoc(), x, RankedTensorType::get(shape, builder.getF32Type()));
  shape[dim + 1] = 1;
  Value part = xf::SliceOp::create(
      builder, call.getLoc(), RankedTensorType::get(shape, builder.getF32Type()), x, from, dim + 1);
  return {reshaped(call.getLoc(), part, type)};
}

Raiser::Results Raiser::part(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  auto type = tokenType(call.getResult(0), axes);
  if (!type || !x) {
    llvm::consumeError(type.takeError());
    return {};
  }
  // All tokens, or the same numbers without an axis of one entry.
  if (x.getType() == *type && call.getBaseName() != "select")
    return {x};
  int64_t along = integerOf(call, "dim").value_or(0);
  std::optional<int64_t> dim = tokenDim(call.getOperand(0), along);
  bool isSelect = call.getBaseName() == "select";
  auto of = cast<graph::SymbolicType>(call.getOperand(0).getType());
  along += along < 0 ? of.getRank() : 0;
  if (isSelect && along >= 0 && along < of.getRank() && of.getNumber(along) == 1 &&
      ranked(x).getNumElements() == type->getNumElements())
    return {reshaped(call.getLoc(), x, *type)};
  // A symbolic start is no number.
  StringRef start = isSelect ? "index" : "start";
  if (!dim || !isFloat(x) || (call.getArgument(start) && !integerOf(call, start)))
    return {};
  if (integerOf(call, "step").value_or(1) != 1)
    return everyOther(call, x, *dim, *type);
  int64_t from = integerOf(call, start).value_or(0), length = ranked(x).getDimSize(*dim);
  from += from < 0 ? length : 0;
  SmallVector<int64_t> shape(ranked(x).getShape());
  shape[*dim] = isSelect ? 1 : type->getNumElements() * length / ranked(x).getNumElements();
  if (from < 0 || shape[*dim] < 1 || from + shape[*dim] > length)
    return {};
  Value slice = xf::SliceOp::create(
      builder, call.getLoc(), RankedTensorType::get(shape, builder.getF32Type()), x, from, *dim);
  if (ranked(slice).getNumElements() != type->getNumElements())
    return {};
  return {reshaped(call.getLoc(), slice, *type)};
}

Raiser::Results Raiser::parts(graph::CallOp call) {
  Value x = lookup(call.getOperand(0));
  std::optional<int64_t> dim = tokenDim(call.getOperand(0), integerOf(call, "dim").value_or(0));
  if (!x || !dim || !isFloat(x))
    return {};
  Results results;
  int64_t from = 0, length = ranked(x).getDimSize(*dim),
          others = ranked(x).getNumElements() / length;
  for (Value result : call.getResults()) {
    auto type = tokenType(result, axes);
    if (!type) {
      llvm::consumeError(type.takeError());
      return {};
    }
    SmallVector<int64_t> shape(ranked(x).getShape());
    shape[*dim] = type->getNumElements() / others;
    if (shape[*dim] < 1 || from + shape[*dim] > length ||
        shape[*dim] * others != type->getNumElements())
      return {};
    Value slice = xf::SliceOp::create(
        builder, call.getLoc(), RankedTensorType::get(shape, builder.getF32Type()), x, from, *dim);
    results.push_back(reshaped(call.getLoc(), slice, *type));
    from += shape[*dim];
  }
  return results;
}

/// The numbers of `src` in the place of others.
Raiser::Results Raiser::written(graph::CallOp call) {
  Value src = call.getTensor("src"), x = src ? lookup(src) : Value();
  auto type = tokenType(call.getResult(0), axes);
  bool isCopy = type && x && isFloat(x) && x.getType() == *type;
  llvm::consumeError(type.takeError());
  return isCopy ? Results{x} : Results{};
}

/// A value that is written part by part, of which this is the last.
Raiser::Results Raiser::placed(graph::CallOp call) {
  auto type = tokenType(call.getResult(0), axes);
  std::optional<int64_t> dim = tokenDim(call.getResult(0), integerOf(call, "dim").value_or(0));
  if (!type || !dim) {
    llvm::consumeError(type.takeError());
    return {};
  }
  SmallVector<Value> parts;
  int64_t end = type->getDimSize(*dim);
  for (graph::CallOp part = call; part; part = callOf(part.getTensor("self"), "slice_scatter")) {
    Value x = part.getTensor("src") ? lookup(part.getTensor("src")) : Value();
    bool isNext = x && isFloat(x) && ranked(x).getRank() == type->getRank() &&
                  tokenDim(part.getResult(0), integerOf(part, "dim").value_or(0)) == *dim &&
                  integerOf(part, "step").value_or(1) == 1 && integerOf(part, "end") &&
                  std::min(*integerOf(part, "end"), type->getDimSize(*dim)) == end;
    SmallVector<int64_t> shape(isNext ? ranked(x).getShape() : type->getShape());
    end -= shape[*dim];
    if (!isNext || integerOf(part, "start").value_or(0) != end)
      return {};
    shape[*dim] = type->getDimSize(*dim);
    if (shape != SmallVector<int64_t>(type->getShape()))
      return {};
    parts.push_back(x);
    if (end == 0)
      break;
  }
  if (end != 0)
    return {};
  std::reverse(parts.begin(), parts.end());
  return {xf::ConcatOp::create(builder, call.getLoc(), *type, parts, *dim)};
}

Raiser::Results Raiser::joined(graph::CallOp call) {
  std::optional<int64_t> dim = tokenDim(call.getResult(0), integerOf(call, "dim").value_or(0));
  SmallVector<Value> values;
  size_t empty = 0;
  for (Value operand : call.getOperands()) {
    auto sizes = cast<graph::SymbolicType>(operand.getType());
    if (!isData(operand) && llvm::is_contained(sizes.getSizes(), builder.getI64IntegerAttr(0))) {
      ++empty;
      continue;
    }
    Value x = isData(operand) ? lookup(operand) : fixedRow(operand);
    if (!x || !dim || !isFloat(x))
      return {};
    values.push_back(x);
  }
  // A list may name a tensor twice.
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("tensors"));
  if (!list || list.size() != values.size() + empty || values.empty())
    return {};
  auto type = tokenType(call.getResult(0), axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return {};
  }
  // Parts may lack axes of one entry in front that all have together.
  for (Value &value : values) {
    SmallVector<int64_t> shape(ranked(value).getShape());
    if (int64_t(shape.size()) > type->getRank())
      return {};
    shape.insert(shape.begin(), type->getRank() - shape.size(), 1);
    value = reshaped(call.getLoc(), value,
                     RankedTensorType::get(shape, ranked(value).getElementType()));
  }
  // Where leading axes were dropped from the parts alone, the sizes do not add up.
  int64_t together = 0;
  for (Value value : values) {
    SmallVector<int64_t> shape(ranked(value).getShape());
    together += shape[*dim];
    shape[*dim] = type->getDimSize(*dim);
    if (shape != SmallVector<int64_t>(type->getShape()))
      return {};
  }
  if (together != type->getDimSize(*dim))
    return {};
  return {xf::ConcatOp::create(builder, call.getLoc(), *type, values, *dim)};
}

/// Values side by side along a new axis.
Raiser::Results Raiser::stacked(graph::CallOp call) {
  auto type = tokenType(call.getResult(0), axes);
  std::optional<int64_t> dim = tokenDim(call.getResult(0), integerOf(call, "dim").value_or(0));
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("tensors"));
  if (!type || !list || list.empty() || (!dim && list.size() > 1)) {
    llvm::consumeError(type.takeError());
    return {};
  }
  SmallVector<int64_t> shape(type->getShape());
  if (dim)
    shape[*dim] = 1;
  auto part = RankedTensorType::get(shape, builder.getF32Type());
  SmallVector<Value> parts;
  for (Attribute each : list) {
    auto operand = dyn_cast<graph::OperandAttr>(each);
    Value x = operand ? lookup(call.getOperand(operand.getIndex())) : Value();
    if (!x || !isFloat(x) || ranked(x).getNumElements() != part.getNumElements())
      return {};
    parts.push_back(reshaped(call.getLoc(), x, part));
  }
  if (parts.size() == 1)
    return {reshaped(call.getLoc(), parts.front(), *type)};
  if (type->getDimSize(*dim) != int64_t(parts.size()))
    return {};
  return {xf::ConcatOp::create(builder, call.getLoc(), *type, parts, *dim)};
}
