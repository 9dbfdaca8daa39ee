// Rows of tables that a program reads by positions, or reads alike for all tokens.
#include "Follower.h"
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// The places of a token's entries in `value`: those of its row, and of the entries in it; none
/// where that is no vector.
static std::optional<Follower::Places> placesOfRow(Value value, const TokenAxes &axes) {
  Follower::Places at(rankOf(value));
  int64_t columns = 0;
  for (auto [axis, line] : llvm::enumerate(at)) {
    if (axes.axis(value) == axis)
      line.row = 1;
    else if (!isOne(value, axis))
      line.column = ++columns;
  }
  return columns == 1 && axes.countAxes(value) <= 1 ? std::optional(at) : std::nullopt;
}

/// A row of a table by the token's position, or the same one for all of them; null where `value` is
/// none.
Value Raiser::fixedRow(Value value) {
  std::string obstacle;
  std::optional<Follower::Places> at = placesOfRow(value, axes);
  auto origin =
      at ? Follower(axes, rotations.numbersOf(), obstacle).originOf(value, *at) : std::nullopt;
  if (!origin || !parameterOf(origin->stored))
    return {};
  // A table may be stored for one sequence.
  ArrayRef<Line> places(origin->at);
  int64_t front = int64_t(places.size()) - 2;
  for (int64_t axis = 0; axis < front; ++axis)
    if (!isOne(origin->stored, axis))
      return {};
  if (front < 0)
    return {};
  auto [row, entry] = std::pair(places[front], places[front + 1]);
  auto type = tokenType(value, axes);
  if (!type) {
    llvm::consumeError(type.takeError());
    return {};
  }
  bool isWhole = !entry.row && entry.column == 1 && entry.number == 0 && !entry.isShifted &&
                 !entry.rounded && type->getRank() == 1 &&
                 cast<graph::SymbolicType>(origin->stored.getType()).getNumber(front + 1) ==
                     type->getDimSize(0);
  constexpr int64_t mostRows = 1 << 24;
  bool isPlace = row.number >= 0 && row.number < mostRows && row.number == std::floor(row.number);
  if (!isWhole || !isPlace || !(row.isNumber() || (row.isCount() && row.row)))
    return {};
  Location loc = value.getLoc();
  auto id = RankedTensorType::get({}, builder.getI32Type());
  Value table = parameter(origin->stored, /*isMatrix=*/true);
  if (ranked(table).getRank() != 2)
    return {};
  Value place = row.isNumber()
                    ? Value(xf::ConstantOp::create(builder, loc, id, int32_t(row.number)))
                    : Value(xf::PositionOp::create(builder, loc, id, int64_t(row.number)));
  return xf::EmbedOp::create(builder, loc, table, place);
}

std::optional<Raiser::Place> Raiser::positionOf(Value value) const {
  auto isWide = [](Type type) { return type.isF32() || type.isF64(); };
  if (axes.countAxes(value) != 1 || !isWide(elementOf(value)))
    return std::nullopt;
  // What is added to it, and where it is rounded down.
  Value from = value;
  double added = 0, by = 1;
  graph::CallOp call;
  while ((call = from.getDefiningOp<graph::CallOp>()) && isWide(elementOf(from))) {
    std::optional<Sides> sides = callOf(from, "add") ? sidesOf(call) : std::nullopt;
    if (call.getOperands().empty() || (!callOf(from, "_to_copy") && !(sides && sides->number)))
      break;
    added += sides ? *sides->number : 0;
    from = call.getOperand(0);
  }
  StringRef name = call ? call.getBaseName() : StringRef();
  bool isRounded = name == "floor" || name == "floor_divide" ||
                   (name == "div" && call.getArgument("rounding_mode"));
  if (isRounded) {
    if (call.getOperands().empty())
      return std::nullopt;
    by = name == "floor" ? 1 : numberOf(call, "other").value_or(0);
    from = call.getOperand(0);
  }
  std::optional<Follower::Places> at = placesOfToken(from, axes);
  if (!at)
    return std::nullopt;
  std::string obstacle;
  auto found = Follower(axes, rotations.numbersOf(), obstacle).entry(from, *at);
  auto *line = found ? std::get_if<Line>(&*found) : nullptr;
  if (!line || line->column || line->isShifted || line->rounded || !(line->row > 0) || !(by > 0))
    return std::nullopt;
  double over = std::round(by / line->row), plus = std::round(line->number / line->row);
  constexpr double most = 1 << 24;
  bool isIt = over >= 1 && over < most && line->row == by / over && plus >= 0 &&
              line->number == plus * line->row && (isRounded || over == 1);
  plus += added * over;
  isIt &= added == std::floor(added) && plus >= 0 && plus < most;
  return isIt ? std::optional(Place{uint64_t(plus), uint64_t(over)}) : std::nullopt;
}

/// `ids` before ops that keep a token's only id.
static Value beforeShapes(Value ids) {
  while (auto call = ids ? ids.getDefiningOp<graph::CallOp>() : graph::CallOp()) {
    bool keeps = llvm::is_contained({"view", "reshape", "unsqueeze", "squeeze", "clone"},
                                    call.getBaseName());
    auto type = cast<graph::SymbolicType>(call.getOperand(0).getType());
    int64_t dim = integerOf(call, "dim").value_or(0);
    dim += dim < 0 ? type.getRank() : 0;
    if (graph::CallOp select = callOf(ids, "select"))
      keeps = dim >= 0 && dim < type.getRank() && type.getNumber(dim) == 1;
    if (!keeps || !call.getTarget().starts_with("aten."))
      break;
    ids = call.getOperand(0);
  }
  return ids;
}

/// The ids with which a token's is compared; false where `condition` is not one of these.
static bool collectIds(Value condition, Value ids, SmallVectorImpl<int32_t> &found) {
  condition = beforeShapes(condition);
  auto call = condition.getDefiningOp<graph::CallOp>();
  StringRef name = call ? call.getBaseName() : StringRef();
  if (llvm::is_contained({"__or__", "bitwise_or", "logical_or"}, name)) {
    auto isIt = [&](Value side) { return collectIds(side, ids, found); };
    return call.getNumOperands() == 2 && llvm::all_of(call.getOperands(), isIt);
  }
  std::optional<int64_t> id = name == "eq" ? integerOf(call, "other") : std::nullopt;
  if (!id || *id < 0 || !llvm::isInt<32>(*id) || beforeShapes(call.getTensor("self")) != ids)
    return false;
  found.push_back(int32_t(*id));
  return true;
}

/// The token's id, or another in its place; null where `ids` are others.
Value Raiser::idOf(Value ids) {
  ids = beforeShapes(ids);
  if (Value known = lookup(ids); known && ranked(known).getRank() == 0)
    return known;
  graph::CallOp where = callOf(ids, "where");
  std::optional<int64_t> by = where ? integerOf(where, "self") : std::nullopt;
  Value otherwise = where ? beforeShapes(where.getTensor("other")) : Value();
  Value token = otherwise ? lookup(otherwise) : Value();
  SmallVector<int32_t> replaced;
  if (!by || *by < 0 || !llvm::isInt<32>(*by) || !token || !token.getDefiningOp<xf::TokenOp>() ||
      !collectIds(where.getTensor("condition"), otherwise, replaced))
    return {};
  return xf::TokenOp::create(builder, where.getLoc(), token.getType(), replaced, uint32_t(*by));
}

Value Raiser::rowOf(Location loc, Value table, Value ids) {
  graph::StoredOp stored = storedOf(table);
  Value id = ids ? idOf(ids) : Value();
  if (!stored || !id || ranked(id).getRank() != 0 || ranked(parameter(stored)).getRank() != 2)
    return {};
  return xf::EmbedOp::create(builder, loc, parameter(stored), id);
}

/// A row of a table by the token's id.
Raiser::Results Raiser::row(graph::CallOp call) {
  Value made = rowOf(call.getLoc(), call.getTensor("weight"), call.getTensor("indices"));
  return made ? Results{made} : Results{};
}
