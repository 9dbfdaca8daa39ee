// Rows of tables that a program reads by positions, or reads alike for all tokens.
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// The offset by which `value` counts positions from 0; none where it is no count of them.
static std::optional<int64_t> offsetOfPositions(Value value, const TokenAxes &axes) {
  int64_t offset = 0;
  while (value) {
    if (auto input = value.getDefiningOp<graph::InputOp>())
      return input.getRole() == "position" ? std::optional(offset) : std::nullopt;
    auto call = value.getDefiningOp<graph::CallOp>();
    if (!call || axes.isData(value) || axes.countAxes(value) != 1)
      return std::nullopt;
    if (graph::CallOp range = callOf(value, "arange")) {
      bool isWhole = range.getArgument("end") == axes.tokens() && !range.getArgument("step") &&
                     integerOf(range, "start").value_or(0) == 0 &&
                     (!range.getArgument("start") || integerOf(range, "start"));
      return isWhole ? std::optional(offset) : std::nullopt;
    }
    if (graph::CallOp sum = callOf(value, "add")) {
      std::optional<int64_t> number = integerOf(sum, "other");
      if (!number || !sidesOf(sum) || *number < 0 || *number > (1 << 20))
        return std::nullopt;
      offset += *number;
    } else if (!callOf(value, "unsqueeze") && !callOf(value, "expand") && !callOf(value, "view") &&
               !callOf(value, "clone") && !callOf(value, "squeeze") &&
               !(callOf(value, "repeat") && value.getType() == call.getOperand(0).getType())) {
      return std::nullopt;
    }
    value = call.getOperand(0);
  }
  return std::nullopt;
}

/// The table and the ids of the rows that `value` is.
static std::pair<Value, Value> rowsOf(Value value) {
  value = beforeCopies(value);
  while (graph::CallOp shaped = callOf(value, "view"))
    value = beforeCopies(shaped.getOperand(0));
  if (graph::CallOp row = callOf(value, "embedding"))
    return {row.getTensor("weight"), row.getTensor("indices")};
  if (graph::CallOp row = callOf(value, "index_select"); row && integerOf(row, "dim") == 0)
    return {row.getTensor("self"), row.getTensor("index")};
  graph::CallOp row = callOf(value, "index");
  auto places = row ? dyn_cast_or_null<ArrayAttr>(row.getArgument("indices")) : ArrayAttr();
  if (places && places.size() == 1 && row.getTensor("self"))
    if (auto place = dyn_cast<graph::OperandAttr>(places[0]))
      return {row.getTensor("self"), row.getOperand(place.getIndex())};
  return {};
}

/// A row of a table by the token's position, or the same one for all of them; null where `value` is
/// none.
Value Raiser::fixedRow(Value value) {
  auto [weight, indices] = rowsOf(value);
  graph::StoredOp table = storedOf(weight);
  if (!table || !indices || axes.isData(indices) ||
      cast<graph::SymbolicType>(table.getType()).getRank() != 2)
    return {};
  Location loc = value.getLoc();
  auto id = RankedTensorType::get({}, builder.getI32Type());
  if (std::optional<int64_t> offset = offsetOfPositions(indices, axes)) {
    Value position = xf::PositionOp::create(builder, loc, id, *offset);
    return xf::EmbedOp::create(builder, loc, parameter(table), position);
  }
  std::optional<double> same = numberIn(indices, axes);
  if (!same || *same < 0 || *same > INT32_MAX)
    return {};
  Value constant = xf::ConstantOp::create(builder, loc, id, int32_t(*same));
  return xf::EmbedOp::create(builder, loc, parameter(table), constant);
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

/// A row of a table by the token's id.
Raiser::Results Raiser::row(graph::CallOp call) {
  graph::StoredOp table = storedOf(call.getTensor("weight"));
  Value id = lookup(beforeShapes(call.getTensor("indices")));
  auto rankOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  if (!table || !id || rankOf(id) != 0 || rankOf(parameter(table)) != 2)
    return {};
  return {xf::EmbedOp::create(builder, call.getLoc(), parameter(table), id)};
}
