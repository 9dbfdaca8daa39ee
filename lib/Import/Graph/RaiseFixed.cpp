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

/// `ids` before ops that keep a token's only id.
static Value beforeShapes(Value ids) {
  while (auto call = ids ? ids.getDefiningOp<graph::CallOp>() : graph::CallOp()) {
    bool keeps =
        llvm::is_contained({"view", "reshape", "unsqueeze", "squeeze"}, call.getBaseName());
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

Value Raiser::rowOf(Location loc, Value table, Value ids) {
  graph::StoredOp stored = storedOf(table);
  Value id = ids ? lookup(beforeShapes(ids)) : Value();
  if (!stored || !id || ranked(id).getRank() != 0 || ranked(parameter(stored)).getRank() != 2)
    return {};
  return xf::EmbedOp::create(builder, loc, parameter(stored), id);
}

/// A row of a table by the token's id.
Raiser::Results Raiser::row(graph::CallOp call) {
  Value made = rowOf(call.getLoc(), call.getTensor("weight"), call.getTensor("indices"));
  return made ? Results{made} : Results{};
}
