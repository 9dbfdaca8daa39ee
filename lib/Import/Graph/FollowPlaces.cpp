// Where an entry of a value comes from: ops that move entries.
#include "Follower.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

using Found = Follower::Found;

std::optional<Line> Follower::index(Value value, const Places &at) {
  Origin *before = std::exchange(origin, nullptr);
  Found place = value ? entry(value, at) : std::nullopt;
  origin = before;
  return place && std::holds_alternative<Line>(*place) ? std::optional(std::get<Line>(*place))
                                                       : std::nullopt;
}

static Attribute sizeOf(Value value, int64_t axis) {
  return cast<graph::SymbolicType>(value.getType()).getSizes()[axis];
}

/// An axis that is repeated has one entry, or keeps its length.
Found Follower::repeated(graph::CallOp call, const Places &at) {
  Value from = call.getOperand(0), to = call.getResult(0);
  int64_t inFront = rankOf(to) - rankOf(from);
  if (inFront < 0)
    return std::nullopt;
  Places own(ArrayRef(at).drop_front(inFront));
  for (auto [axis, line] : llvm::enumerate(own)) {
    if (isOne(from, axis))
      line = Line();
    else if (sizeOf(from, axis) != sizeOf(to, inFront + axis))
      return std::nullopt;
  }
  return entry(from, own);
}

/// Of parts one of which `at` is in.
Found Follower::concatenated(graph::CallOp call, const Places &at) {
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("tensors"));
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? int64_t(at.size()) : 0;
  if (!list || dim < 0 || dim >= int64_t(at.size()) || !at[dim].isNumber())
    return std::nullopt;
  Places own(at);
  for (Attribute one : list) {
    auto operand = dyn_cast<graph::OperandAttr>(one);
    Value value = operand ? call.getOperand(operand.getIndex()) : Value();
    std::optional<int64_t> length = value && rankOf(value) == int64_t(at.size())
                                        ? cast<graph::SymbolicType>(value.getType()).getNumber(dim)
                                        : std::nullopt;
    if (!length)
      return std::nullopt;
    if (own[dim].number < double(*length))
      return entry(value, own);
    own[dim].number -= double(*length);
  }
  return std::nullopt;
}

Found Follower::reshaped(graph::CallOp call, const Places &at) {
  // The axes of several entries keep their order and sizes.
  Value from = call.getOperand(0), to = call.getResult(0);
  auto several = [](Value value) {
    SmallVector<int64_t> found;
    for (int64_t axis = 0; axis < rankOf(value); ++axis)
      if (!isOne(value, axis))
        found.push_back(axis);
    return found;
  };
  SmallVector<int64_t> before = several(from), after = several(to);
  if (before.size() != after.size())
    return std::nullopt;
  Places own(rankOf(from));
  for (auto [a, b] : llvm::zip(before, after)) {
    if (sizeOf(from, a) != sizeOf(to, b))
      return std::nullopt;
    own[a] = at[b];
  }
  return entry(from, own);
}

Found Follower::turned(graph::CallOp call, const Places &at) {
  SmallVector<int64_t> order = orderOf(call);
  if (order.size() != at.size())
    return std::nullopt;
  Places own(at.size());
  for (auto [to, from] : llvm::enumerate(order))
    own[from] = at[to];
  return entry(call.getOperand(0), own);
}

/// A start that is not a number shifts all entries alike.
Found Follower::part(graph::CallOp call, const Places &at) {
  Value from = call.getOperand(0);
  bool isSelect = call.getBaseName() == "select";
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(from) : 0;
  StringRef name = isSelect ? "index" : "start";
  std::optional<int64_t> start = call.getArgument(name) ? integerOf(call, name) : 0;
  std::optional<int64_t> step = call.getArgument("step") ? integerOf(call, "step") : 1;
  if (dim < 0 || dim >= rankOf(from) || !step || *step < 1 || (!start && isSelect))
    return std::nullopt;
  if (std::optional<int64_t> length = cast<graph::SymbolicType>(from.getType()).getNumber(dim);
      start && *start < 0 && length)
    *start = isSelect ? *start + *length : std::max<int64_t>(0, *start + *length);
  else if (start && *start < 0)
    start = std::nullopt;
  Places own(at);
  if (isSelect) {
    if (!start || *start < 0)
      return std::nullopt;
    own.insert(own.begin() + dim, Line{0, 0, double(*start)});
    return entry(from, own);
  }
  Found place = join(
      own[dim], Line{0, 0, double(*step)}, [](double x, double y) { return x * y; }, Form::Product);
  if (place)
    place = join(
        *place, Line{0, 0, double(start.value_or(0)), /*isShifted=*/!start},
        [](double x, double y) { return x + y; }, Form::Sum);
  if (!place)
    return std::nullopt;
  own[dim] = std::get<Line>(*place);
  return entry(from, own);
}

Found Follower::indexed(graph::CallOp call, const Places &at) {
  Value table = call.getTensor("self");
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"));
  if (!table || !list || int64_t(list.size()) > rankOf(table))
    return std::nullopt;
  int64_t others = rankOf(table) - list.size(), common = int64_t(at.size()) - others;
  if (common < 0)
    return std::nullopt;
  Places own;
  for (Attribute one : list) {
    auto operand = dyn_cast<graph::OperandAttr>(one);
    Value index = operand ? call.getOperand(operand.getIndex()) : Value();
    if (!index || rankOf(index) > common)
      return std::nullopt;
    Places inner(ArrayRef(at).take_front(common).take_back(rankOf(index)));
    for (auto [axis, line] : llvm::enumerate(inner))
      if (isOne(index, axis))
        line = Line();
    std::optional<Line> place = this->index(index, inner);
    if (!place)
      return std::nullopt;
    own.push_back(*place);
  }
  own.append(at.begin() + common, at.end());
  return entry(table, own);
}

Found Follower::gathered(graph::CallOp call, const Places &at) {
  Value table = call.getTensor("self"), index = call.getTensor("index");
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(table) : 0;
  std::optional<Line> place = this->index(index, at);
  if (!place || dim < 0 || dim >= int64_t(at.size()))
    return std::nullopt;
  Places own(at);
  own[dim] = *place;
  return entry(table, own);
}

/// A row of a table.
Found Follower::row(graph::CallOp call, const Places &at) {
  Value table = call.getTensor("weight"), ids = call.getTensor("indices");
  if (!table || !ids || rankOf(table) != 2 || rankOf(ids) + 1 != int64_t(at.size()))
    return std::nullopt;
  std::optional<Line> place = index(ids, Places(ArrayRef(at).drop_back()));
  return place ? entry(table, Places{*place, at.back()}) : std::nullopt;
}

/// Entries along one axis, at those places that a vector has.
Found Follower::picked(graph::CallOp call, const Places &at) {
  Value table = call.getTensor("self");
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(table) : 0;
  if (dim < 0 || dim >= int64_t(at.size()))
    return std::nullopt;
  std::optional<Line> place = index(call.getTensor("index"), Places{at[dim]});
  if (!place)
    return std::nullopt;
  Places own(at);
  own[dim] = *place;
  return entry(table, own);
}
