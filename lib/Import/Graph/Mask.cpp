#include "Mask.h"
#include "Follower.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

using Found = Follower::Found;
using Places = Follower::Places;

std::optional<Steps> ctxc::pt2::stepsOf(Value mask, const TokenAxes &axes, const Numbers &numbers,
                                        std::string &obstacle) {
  // A mask that was repeated for the heads is the same for each.
  while (graph::CallOp call = callOf(mask, "expand")) {
    Value one = call.getTensor("self");
    if (!one || rankOf(one) != rankOf(mask))
      break;
    mask = one;
  }
  int64_t rank = rankOf(mask);
  Places at(rank);
  if (rank < 2 || axes.isData(mask))
    return std::nullopt;
  for (int64_t axis = 0; axis < rank; ++axis) {
    bool isRow = axis == rank - 2, isColumn = axis == rank - 1;
    if (isRow || isColumn)
      at[axis] = isOne(mask, axis) ? Line() : Line{double(isRow), double(isColumn)};
    else if (!isOne(mask, axis)) {
      obstacle = "a mask that differs by head";
      return std::nullopt;
    }
  }
  Found found = Follower(axes, numbers, obstacle).entry(mask, at);
  if (!found)
    return std::nullopt;
  if (auto *line = std::get_if<Line>(&*found))
    return line->isNumber() ? std::optional(Steps(line->number)) : std::nullopt;
  return std::get<Steps>(*found);
}

std::optional<Slopes> ctxc::pt2::slopesOf(Value added, ArrayRef<int64_t> heads,
                                          const TokenAxes &axes, const Numbers &numbers,
                                          std::string &obstacle) {
  constexpr int64_t mostHeads = 512;
  int64_t rank = rankOf(added), count = 1;
  for (int64_t size : heads)
    count *= size > 0 && size <= mostHeads && count <= mostHeads ? size : 0;
  if (rank < 2 || rank > int64_t(heads.size()) + 2 || axes.isData(added) || count < 1 ||
      count > mostHeads)
    return std::nullopt;
  Slopes slopes;
  for (int64_t head = 0; head < count; ++head) {
    Places at(heads.size() + 2);
    int64_t rest = head;
    for (int64_t axis = heads.size(); axis-- > 0; rest /= heads[axis])
      at[axis].number = double(rest % heads[axis]);
    at[heads.size()].row = at[heads.size() + 1].column = 1;
    Places own(ArrayRef(at).take_back(rank));
    for (auto [axis, line] : llvm::enumerate(own))
      if (isOne(added, axis))
        line = Line();
    Found found = Follower(axes, numbers, obstacle).entry(added, own);
    auto *line = found ? std::get_if<Line>(&*found) : nullptr;
    if (!line || !std::isfinite(line->column) || !std::isfinite(line->number) ||
        (head && line->rounded != slopes.rounded))
      return std::nullopt;
    slopes.ofHeads.push_back(line->column);
    slopes.rounded = line->rounded;
  }
  return slopes;
}

std::optional<double> ctxc::pt2::numberIn(Value value, const TokenAxes &axes) {
  std::string obstacle;
  if (axes.isData(value) || axes.countAxes(value) > 1)
    return std::nullopt;
  Places at(rankOf(value));
  bool hasColumns = false;
  for (auto [axis, line] : llvm::enumerate(at)) {
    if (axes.axis(value) == axis)
      line.row = 1;
    else if (isOne(value, axis))
      continue;
    else if (std::exchange(hasColumns, true)) // two that depend on each other could cancel
      return std::nullopt;
    else
      line.column = 1;
  }
  Found found = Follower(axes, writtenNumbers, obstacle).entry(value, at);
  auto *line = found ? std::get_if<Line>(&*found) : nullptr;
  return line && line->isNumber() ? std::optional(line->number) : std::nullopt;
}
