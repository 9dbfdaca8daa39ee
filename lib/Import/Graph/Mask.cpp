#include "Mask.h"
#include "GraphValues.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {

using Found = std::optional<Entry>;
using Places = SmallVector<Line>; ///< one for each axis

int64_t rankOf(Value value) { return cast<graph::SymbolicType>(value.getType()).getRank(); }
bool isOne(Value value, int64_t axis) {
  return cast<graph::SymbolicType>(value.getType()).getNumber(axis) == 1;
}

/// Follows an entry through what makes its value.
class Follower {
public:
  Follower(const TokenAxes &axes, std::string &obstacle) : axes(axes), obstacle(obstacle) {}

  Found entry(Value value, const Places &at);

private:
  using Method = Found (Follower::*)(graph::CallOp, const Places &);
  static Method methodOf(StringRef name);

  Found stored(graph::StoredOp op, const Places &at);
  Found counted(graph::CallOp call, const Places &at);
  Found filled(graph::CallOp call, const Places &at);
  Found copied(graph::CallOp call, const Places &at) { return entry(call.getOperand(0), at); }
  Found expanded(graph::CallOp call, const Places &at);
  Found reshaped(graph::CallOp call, const Places &at);
  Found turned(graph::CallOp call, const Places &at);
  Found part(graph::CallOp call, const Places &at);
  Found indexed(graph::CallOp call, const Places &at);
  Found gathered(graph::CallOp call, const Places &at);
  Found triangle(graph::CallOp call, const Places &at);
  Found chosen(graph::CallOp call, const Places &at);
  Found joined(graph::CallOp call, const Places &at);
  Found negated(graph::CallOp call, const Places &at);
  Found steps(graph::CallOp call, const Places &at);
  Found sums(graph::CallOp call, const Places &at);

  /// The entry of an argument that meets the result's axes from the last one on, or of a number.
  Found argument(graph::CallOp call, StringRef name, const Places &at);
  Found fail(graph::CallOp call) {
    if (obstacle.empty())
      obstacle = call.getTarget().str();
    return std::nullopt;
  }

  const TokenAxes &axes;
  std::string &obstacle;
  unsigned followed = 0, depth = 0;
};

} // namespace

Follower::Method Follower::methodOf(StringRef name) {
  return llvm::StringSwitch<Method>(name)
      .Case("arange", &Follower::counted)
      .Cases({"full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "new_zeros",
              "new_ones", "new_full", "scalar_tensor"},
             &Follower::filled)
      .Cases({"_to_copy", "to", "clone", "alias", "detach", "contiguous", "lift_fresh_copy",
              "type_as"},
             &Follower::copied)
      .Case("expand", &Follower::expanded)
      .Cases({"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze"}, &Follower::reshaped)
      .Cases({"transpose", "permute", "t"}, &Follower::turned)
      .Cases({"slice", "select"}, &Follower::part)
      .Case("index", &Follower::indexed)
      .Case("gather", &Follower::gathered)
      .Cases({"tril", "triu"}, &Follower::triangle)
      .Cases({"where", "masked_fill"}, &Follower::chosen)
      .Cases({"add", "sub", "rsub", "mul"}, &Follower::joined)
      .Cases({"le", "lt", "ge", "gt", "eq", "ne"}, &Follower::joined)
      .Cases({"__and__", "logical_and", "bitwise_and", "__or__", "logical_or", "bitwise_or"},
             &Follower::joined)
      .Cases({"logical_not", "bitwise_not", "neg"}, &Follower::negated)
      .Case("diff", &Follower::steps)
      .Case("cumsum", &Follower::sums)
      .Default(nullptr);
}

Found Follower::entry(Value value, const Places &at) {
  // Far more than any model's masks have.
  constexpr unsigned mostFollowed = 4096, mostDepth = 256;
  if (auto input = value.getDefiningOp<graph::InputOp>()) {
    std::optional<unsigned> axis = axes.axis(input);
    if (input.getRole() != "position" || !axis) {
      obstacle = "a value that is read";
      return std::nullopt;
    }
    return at[*axis];
  }
  if (auto op = value.getDefiningOp<graph::StoredOp>())
    return stored(op, at);
  auto call = cast<graph::CallOp>(value.getDefiningOp());
  Method method =
      call.getTarget().starts_with("aten.") ? methodOf(call.getBaseName()) : Method(nullptr);
  if (!method || axes.isData(value) || call.getNumResults() != 1 || depth >= mostDepth ||
      ++followed > mostFollowed)
    return fail(call);
  ++depth;
  Found found = (this->*method)(call, at);
  --depth;
  return found ? found : fail(call);
}

/// A table whose entries depend on the distance of row and column alone.
Found Follower::stored(graph::StoredOp op, const Places &at) {
  auto numbers = dyn_cast_or_null<DenseElementsAttr>(op.getValueAttr());
  if (!numbers) {
    obstacle = "the stored tensor " + op.getName().str();
    return std::nullopt;
  }
  ArrayRef<int64_t> shape = cast<ShapedType>(numbers.getType()).getShape();
  SmallVector<double> table(numbers.getValues<double>());
  if (!table.empty() && llvm::all_equal(table))
    return Line{0, 0, table[0]};
  int64_t rows = 1, columns = 1;
  std::optional<int64_t> rowAxis, columnAxis;
  for (auto [axis, line] : llvm::enumerate(at)) {
    if (shape[axis] == 1)
      continue;
    bool isRow = line.row == 1 && !line.column, isColumn = line.column == 1 && !line.row;
    if (line.number != 0 || (!isRow && !isColumn) || (isRow ? rowAxis : columnAxis))
      return std::nullopt;
    (isRow ? rowAxis : columnAxis) = axis;
    (isRow ? rows : columns) = shape[axis];
  }
  if (!rowAxis || !columnAxis)
    return std::nullopt;
  bool isTurned = *columnAxis < *rowAxis;
  auto read = [&](int64_t i, int64_t j) {
    return isTurned ? table[j * rows + i] : table[i * columns + j];
  };
  Steps result(read(0, columns - 1));
  for (int64_t d = 1 - columns; d < rows; ++d) {
    double value = read(std::max<int64_t>(d, 0), std::max<int64_t>(-d, 0));
    for (int64_t i = std::max<int64_t>(d, 0); i < rows && i - d < columns; ++i)
      if (read(i, i - d) != value)
        return std::nullopt;
    if (result.at(d) != value)
      result.set(d, value);
  }
  return result;
}

Found Follower::argument(graph::CallOp call, StringRef name, const Places &at) {
  if (std::optional<double> number = numberOf(call, name))
    return Line{0, 0, *number};
  if (auto flag = dyn_cast_or_null<BoolAttr>(call.getArgument(name)))
    return Line{0, 0, double(flag.getValue())};
  Value value = call.getTensor(name);
  if (!value || rankOf(value) > int64_t(at.size()))
    return std::nullopt;
  Places own(ArrayRef(at).take_back(rankOf(value)));
  for (auto [axis, line] : llvm::enumerate(own))
    if (isOne(value, axis))
      line = Line();
  return entry(value, own);
}

Found Follower::counted(graph::CallOp call, const Places &at) {
  double start = 0, step = 1;
  if (call.getArgument("start")) {
    if (!numberOf(call, "start"))
      return std::nullopt;
    start = *numberOf(call, "start");
  }
  if (call.getArgument("step")) {
    if (!numberOf(call, "step"))
      return std::nullopt;
    step = *numberOf(call, "step");
  }
  if (step != 1)
    return at[0].isNumber() ? Found(Line{0, 0, start + step * at[0].number}) : std::nullopt;
  return Line{at[0].row, at[0].column, at[0].number + start};
}

Found Follower::filled(graph::CallOp call, const Places &) {
  StringRef name = call.getBaseName();
  if (name.contains("zeros"))
    return Line();
  if (name.contains("ones"))
    return Line{0, 0, 1};
  return argument(call, name == "scalar_tensor" ? "s" : "fill_value", {});
}

Found Follower::expanded(graph::CallOp call, const Places &at) {
  return argument(call, "self", at);
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
  auto size = [](Value value, int64_t axis) {
    return cast<graph::SymbolicType>(value.getType()).getSizes()[axis];
  };
  if (before.size() != after.size())
    return std::nullopt;
  Places own(rankOf(from));
  for (auto [a, b] : llvm::zip(before, after)) {
    if (size(from, a) != size(to, b))
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

Found Follower::part(graph::CallOp call, const Places &at) {
  Value from = call.getOperand(0);
  bool isSelect = call.getBaseName() == "select";
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(from) : 0;
  StringRef name = isSelect ? "index" : "start";
  std::optional<int64_t> start = integerOf(call, name);
  if (dim < 0 || dim >= rankOf(from) || integerOf(call, "step").value_or(1) != 1 ||
      (!start && call.getArgument(name)) || start.value_or(0) < 0)
    return std::nullopt;
  Places own(at);
  if (isSelect)
    own.insert(own.begin() + dim, Line{0, 0, double(start.value_or(0))});
  else
    own[dim].number += double(start.value_or(0));
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
    Found place = entry(index, inner);
    if (!place || !std::holds_alternative<Line>(*place))
      return std::nullopt;
    own.push_back(std::get<Line>(*place));
  }
  own.append(at.begin() + common, at.end());
  return entry(table, own);
}

Found Follower::gathered(graph::CallOp call, const Places &at) {
  Value table = call.getTensor("self"), index = call.getTensor("index");
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(table) : 0;
  Found place = index ? entry(index, at) : std::nullopt;
  if (!place || !std::holds_alternative<Line>(*place) || dim < 0 || dim >= int64_t(at.size()))
    return std::nullopt;
  Places own(at);
  own[dim] = std::get<Line>(*place);
  return entry(table, own);
}

Found Follower::triangle(graph::CallOp call, const Places &at) {
  Found inner = entry(call.getOperand(0), at);
  std::optional<int64_t> diagonal = integerOf(call, "diagonal");
  if (!inner || at.size() < 2 || (call.getArgument("diagonal") && !diagonal))
    return std::nullopt;
  bool isLower = call.getBaseName() == "tril";
  Line row = at[at.size() - 2], column = at[at.size() - 1];
  row.number += double(diagonal.value_or(0));
  Found keeps = join(
      column, row, [&](double x, double y) { return isLower ? x <= y : x >= y; }, Form::Comparison);
  return keeps ? join(
                     *keeps, *inner, [](double k, double x) { return k ? x : 0; }, Form::Other)
               : std::nullopt;
}

Found Follower::chosen(graph::CallOp call, const Places &at) {
  bool isFill = call.getBaseName() == "masked_fill";
  Found flag = argument(call, isFill ? "mask" : "condition", at);
  Found yes = argument(call, isFill ? "value" : "self", at);
  Found no = argument(call, isFill ? "self" : "other", at);
  if (!flag || !yes || !no)
    return std::nullopt;
  Found first = join(*flag, *yes, [](double f, double x) { return f ? x : 0; }, Form::Other);
  Found second = join(*flag, *no, [](double f, double x) { return f ? 0 : x; }, Form::Other);
  // Of the two one is 0, so that no infinity meets another.
  return first && second ? join(
                               *first, *second, [](double x, double y) { return x + y; }, Form::Sum)
                         : std::nullopt;
}

Found Follower::joined(graph::CallOp call, const Places &at) {
  Found a = argument(call, "self", at), b = argument(call, "other", at);
  if (!a || !b || (call.getArgument("alpha") && numberOf(call, "alpha") != 1.0))
    return std::nullopt;
  StringRef name = call.getBaseName();
  if (name == "rsub")
    std::swap(a, b);
  using Function = double (*)(double, double);
  auto f = llvm::StringSwitch<Function>(name)
               .Case("add", [](double x, double y) { return x + y; })
               .Cases({"sub", "rsub"}, [](double x, double y) { return x - y; })
               .Case("mul", [](double x, double y) { return x * y; })
               .Case("le", [](double x, double y) { return double(x <= y); })
               .Case("lt", [](double x, double y) { return double(x < y); })
               .Case("ge", [](double x, double y) { return double(x >= y); })
               .Case("gt", [](double x, double y) { return double(x > y); })
               .Case("eq", [](double x, double y) { return double(x == y); })
               .Case("ne", [](double x, double y) { return double(x != y); })
               .Cases({"__and__", "logical_and", "bitwise_and"},
                      [](double x, double y) { return double(x && y); })
               .Default([](double x, double y) { return double(x || y); });
  Form form = name == "add"           ? Form::Sum
              : name.ends_with("sub") ? Form::Difference
              : name.size() == 2      ? Form::Comparison
                                      : Form::Other;
  return join(*a, *b, f, form);
}

Found Follower::negated(graph::CallOp call, const Places &at) {
  Found x = entry(call.getOperand(0), at);
  if (!x)
    return std::nullopt;
  if (call.getBaseName() == "neg")
    return join(Line(), *x, [](double a, double b) { return a - b; }, Form::Difference);
  return join(*x, Line(), [](double a, double) { return double(!a); }, Form::Other);
}

/// The differences of consecutive positions, of which the first has one before it as well.
Found Follower::steps(graph::CallOp call, const Places &at) {
  Found here = entry(call.getTensor("self"), at);
  Found before = argument(call, "prepend", Places(at.size()));
  Found first = entry(call.getTensor("self"), Places(at.size()));
  auto *line = here ? std::get_if<Line>(&*here) : nullptr;
  auto *start = first ? std::get_if<Line>(&*first) : nullptr;
  auto *ahead = before ? std::get_if<Line>(&*before) : nullptr;
  if (!line || !start || !ahead || line->row + line->column != 1 ||
      start->number - ahead->number != 1 || integerOf(call, "n").value_or(1) != 1 ||
      call.getArgument("append"))
    return std::nullopt;
  return Line{0, 0, 1};
}

Found Follower::sums(graph::CallOp call, const Places &at) {
  Found each = entry(call.getOperand(0), at);
  auto *line = each ? std::get_if<Line>(&*each) : nullptr;
  return line && line->isNumber() && line->number == 0 ? Found(Line()) : std::nullopt;
}

std::optional<Steps> ctxc::pt2::stepsOf(Value mask, const TokenAxes &axes, std::string &obstacle) {
  int64_t rank = rankOf(mask);
  Places at(rank);
  if (rank < 2 || axes.isData(mask))
    return std::nullopt;
  for (int64_t axis = 0; axis < rank; ++axis) {
    bool isRow = axis == rank - 2, isColumn = axis == rank - 1;
    if (isRow || isColumn)
      at[axis] = isOne(mask, axis) ? Line() : Line{isRow, isColumn, 0};
    else if (!isOne(mask, axis)) {
      obstacle = "a mask that differs by head";
      return std::nullopt;
    }
  }
  Found found = Follower(axes, obstacle).entry(mask, at);
  if (!found)
    return std::nullopt;
  if (auto *line = std::get_if<Line>(&*found))
    return line->isNumber() ? std::optional(Steps(line->number)) : std::nullopt;
  return std::get<Steps>(*found);
}

std::optional<double> ctxc::pt2::numberIn(Value value, const TokenAxes &axes) {
  std::string obstacle;
  if (axes.isData(value) || axes.countAxes(value) > 1)
    return std::nullopt;
  Places at(rankOf(value));
  for (auto [axis, line] : llvm::enumerate(at)) {
    if (axes.axis(value) == axis)
      line.row = 1;
    else if (!isOne(value, axis))
      return std::nullopt;
  }
  Found found = Follower(axes, obstacle).entry(value, at);
  auto *line = found ? std::get_if<Line>(&*found) : nullptr;
  return line && line->isNumber() ? std::optional(line->number) : std::nullopt;
}
