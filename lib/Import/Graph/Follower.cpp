#include "Follower.h"
#include "dialects/Graph/AtenOps.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

using Found = Follower::Found;

int64_t ctxc::pt2::rankOf(Value value) {
  return cast<graph::SymbolicType>(value.getType()).getRank();
}

bool ctxc::pt2::isOne(Value value, int64_t axis) {
  return cast<graph::SymbolicType>(value.getType()).getNumber(axis) == 1;
}

static double roundedToBF16(double number) {
  llvm::APFloat rounded(number);
  bool losesInfo;
  rounded.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.convertToDouble();
}

Follower::Method Follower::methodOf(graph::CallOp call) {
  static const llvm::StringMap<Method> methods = [] {
    llvm::StringMap<Method> made;
#define ATEN(name, kind, tokens, meaning, raised, followed, generic)                               \
  made[name] = &Follower::followed;
#include "dialects/Graph/AtenOps.def"
    return made;
  }();
  const graph::AtenOp *op = graph::atenOp(call);
  Method method = op ? methods.lookup(op->name) : nullptr;
  return method == &Follower::none || (method && origin && !op->keepsNumbers()) ? nullptr : method;
}

Found Follower::entry(Value value, const Places &at) {
  // Far more than any model's masks have.
  constexpr unsigned mostFollowed = 4096, mostDepth = 256;
  if (rankOf(value) != int64_t(at.size()))
    return std::nullopt;
  if (auto input = value.getDefiningOp<graph::InputOp>(); input && !origin) {
    std::optional<unsigned> axis = axes.axis(input);
    if (input.getRole() != "position" || !axis) {
      obstacle = "a value that is read";
      return std::nullopt;
    }
    return at[*axis];
  }
  if (auto op = value.getDefiningOp<graph::StoredOp>()) {
    if (!origin)
      return stored(op, at);
    *origin = {op, at};
    return Line();
  }
  auto call = dyn_cast<graph::CallOp>(value.getDefiningOp());
  if (!call)
    return std::nullopt;
  Method method = methodOf(call);
  bool readsNone = method == &Follower::counted || method == &Follower::filled;
  if (!method || (call.getOperands().empty() && !readsNone) || axes.isData(value) ||
      call.getNumResults() != 1 || depth >= mostDepth || ++followed > mostFollowed)
    return fail(call);
  ++depth;
  Found found = (this->*method)(call, at);
  --depth;
  // Numbers are those of the value's type.
  if (auto *line = found ? std::get_if<Line>(&*found) : nullptr;
      line && line->isNumber() && elementOf(value).isBF16())
    line->number = roundedToBF16(line->number);
  return found ? found : fail(call);
}

std::optional<Follower::Origin> Follower::originOf(Value value, const Places &at) {
  Origin found;
  origin = &found;
  bool isFound = entry(value, at) && found.stored;
  origin = nullptr;
  return isFound ? std::optional(found) : std::nullopt;
}

/// Entries along one axis that count.
static Found counting(ArrayRef<double> table, int64_t first, int64_t stride, int64_t length,
                      const Line &place) {
  bool isPlace = place.number >= 0 && place.number < double(length) &&
                 place.number == std::floor(place.number);
  if (!isPlace || length < 2)
    return std::nullopt;
  double start = table[first], step = table[first + stride] - start;
  for (int64_t i = 0; i < length; ++i)
    if (table[first + i * stride] != start + double(i) * step)
      return std::nullopt;
  Line line{0, 0, start + place.number * step};
  (place.row ? line.row : line.column) = step;
  return line;
}

/// A table, at numbers of some axes: one entry, or those of row and column where they depend on the
/// distance of these alone, or count.
Found Follower::stored(graph::StoredOp op, const Places &at) {
  std::optional<std::vector<double>> known = op.getFixed() ? numbers(op) : std::nullopt;
  SmallVector<int64_t> shape;
  int64_t count = 1;
  for (int64_t axis = 0; axis < rankOf(op); ++axis) {
    shape.push_back(cast<graph::SymbolicType>(op.getType()).getNumber(axis).value_or(0));
    count *= shape.back();
  }
  if (!known || count < 1 || int64_t(known->size()) != count) {
    obstacle = "the stored tensor " + op.getName().str();
    return std::nullopt;
  }
  ArrayRef<double> table(*known);
  if (llvm::all_equal(table))
    return Line{0, 0, table[0]};
  int64_t first = 0, stride = 1, rows = 1, columns = 1, rowStride = 0, columnStride = 0;
  Line counted;
  bool isShifted = false;
  for (int64_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    const Line &line = at[axis];
    if (shape[axis] == 1)
      continue;
    if (line.isNumber()) {
      if (line.number < 0 || line.number >= double(shape[axis]) ||
          line.number != std::floor(line.number))
        return std::nullopt;
      first += int64_t(line.number) * stride;
    } else if (line.isCount() && !(line.row ? rowStride : columnStride)) {
      counted = line;
      isShifted |= line.number != 0;
      (line.row ? rowStride : columnStride) = stride;
      (line.row ? rows : columns) = shape[axis];
    } else {
      return std::nullopt;
    }
  }
  if (!rowStride && !columnStride)
    return Line{0, 0, table[first]};
  if (!rowStride || !columnStride)
    return counting(table, first, rowStride + columnStride, rows * columns, counted);
  if (isShifted)
    return std::nullopt;
  auto read = [&](int64_t i, int64_t j) { return table[first + i * rowStride + j * columnStride]; };
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
  std::optional<double> step = call.getArgument("step") ? numberOf(call, "step") : 1.0;
  std::optional<double> start = call.getArgument("start") ? numberOf(call, "start") : 0.0;
  if (!step || at.size() != 1)
    return std::nullopt;
  Found here =
      join(at[0], Line{0, 0, *step}, [](double x, double y) { return x * y; }, Form::Product);
  Line first{0, 0, start.value_or(0), /*isShifted=*/!start};
  return here ? join(
                    *here, first, [](double x, double y) { return x + y; }, Form::Sum)
              : std::nullopt;
}

Found Follower::filled(graph::CallOp call, const Places &) {
  StringRef name = call.getBaseName();
  if (name.contains("zeros"))
    return Line();
  if (name.contains("ones"))
    return Line{0, 0, 1};
  return argument(call, name == "scalar_tensor" ? "s" : "fill_value", {});
}

/// Copies, also to another type, in which a number may be another one.
Found Follower::copied(graph::CallOp call, const Places &at) {
  Value from = call.getOperand(0);
  if (origin)
    return beforeCopies(call.getResult(0)) == call.getResult(0) ? std::nullopt : entry(from, at);
  Found found = entry(from, at);
  Type before = elementOf(from), after = elementOf(call.getResult(0));
  auto *line = found ? std::get_if<Line>(&*found) : nullptr;
  if (after.isInteger(1)) {
    auto isSet = [](double x, double) { return double(x != 0); };
    return found ? join(*found, Line(), isSet, Form::Other) : std::nullopt;
  }
  if (isa<IntegerType>(after) && isa<FloatType>(before)) {
    auto towardsZero = [](double x, double) { return std::trunc(x); };
    if (!line || line->isNumber())
      return found ? join(*found, Line(), towardsZero, Form::Other) : std::nullopt;
    bool isWhole = line->row == std::trunc(line->row) && line->column == std::trunc(line->column) &&
                   line->number == std::trunc(line->number) && !line->rounded;
    return isWhole ? found : std::nullopt;
  }
  // What is copied to a wider type was rounded, in a way that is known of products alone.
  bool isWider = isa<FloatType>(before) && isa<FloatType>(after) &&
                 cast<FloatType>(before).getWidth() < cast<FloatType>(after).getWidth();
  if (line && isWider && !line->isNumber() && !line->rounded)
    return std::nullopt;
  if (line && after.isBF16() && !before.isBF16() && line->isCount() && line->column &&
      line->number == 0)
    line->rounded = 1;
  return found;
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
  if (auto *same = std::get_if<Line>(&*flag))
    return same->isNumber() ? same->number ? yes : no : std::nullopt;
  Found first = join(*flag, *yes, [](double f, double x) { return f ? x : 0; }, Form::Other);
  Found second = join(*flag, *no, [](double f, double x) { return f ? 0 : x; }, Form::Other);
  // Of the two one is 0, so that no infinity meets another.
  return first && second ? join(
                               *first, *second, [](double x, double y) { return x + y; }, Form::Sum)
                         : std::nullopt;
}

/// The product of a number and of a count of columns, which is rounded to bfloat16 as they are.
static Found roundedProduct(const Entry &a, const Entry &b) {
  auto *x = std::get_if<Line>(&a), *y = std::get_if<Line>(&b);
  if (x && y && y->isNumber())
    std::swap(x, y);
  bool isIt = x && y && x->isNumber() && y->column == 1 && !y->row && !y->isShifted &&
              y->number == 0 && (!y->rounded || y->rounded == 1);
  return isIt ? Found(Line{0, roundedToBF16(x->number), 0, false, 1}) : std::nullopt;
}

Found Follower::joined(graph::CallOp call, const Places &at) {
  StringRef name = call.getBaseName();
  Found a = argument(call, "self", at);
  Found b = argument(call, name == "pow" ? "exponent" : "other", at);
  if (!a || !b || (call.getArgument("alpha") && numberOf(call, "alpha") != 1.0) ||
      call.getArgument("rounding_mode"))
    return std::nullopt;
  auto isNumber = [](const Entry &one) {
    auto *line = std::get_if<Line>(&one);
    return !line || line->isNumber();
  };
  auto isRounded = [](const Entry &one) {
    auto *line = std::get_if<Line>(&one);
    return line && line->rounded;
  };
  if (elementOf(call.getResult(0)).isBF16() && !(isNumber(*a) && isNumber(*b))) {
    if (name == "mul")
      return roundedProduct(*a, *b);
    if (isRounded(*a) || isRounded(*b))
      return std::nullopt; // once more
  }
  if (name == "rsub")
    std::swap(a, b);
  auto f = graph::atenOp(call)->ofTwo;
  if (!f)
    f = llvm::StringSwitch<decltype(f)>(name)
            .Case("add", [](double x, double y) { return x + y; })
            .Cases({"sub", "rsub"}, [](double x, double y) { return x - y; })
            .Case("mul", [](double x, double y) { return x * y; })
            .Case("div", [](double x, double y) { return x / y; })
            .Case("pow", [](double x, double y) { return std::pow(x, y); })
            .Cases({"__and__", "bitwise_and"}, [](double x, double y) { return double(x && y); })
            .Default([](double x, double y) { return double(x || y); });
  Form form = name == "add"           ? Form::Sum
              : name.ends_with("sub") ? Form::Difference
              : name == "mul"         ? Form::Product
              : name == "div"         ? Form::Quotient
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

/// Functions of numbers.
Found Follower::function(graph::CallOp call, const Places &at) {
  Found x = entry(call.getOperand(0), at);
  auto f = graph::atenOp(call)->function;
  return x ? join(*x, Line(), [f](double a, double) { return f(a); }, Form::Other) : std::nullopt;
}

/// The differences of consecutive positions, of which the first has one before it as well.
Found Follower::steps(graph::CallOp call, const Places &at) {
  Found here = entry(call.getTensor("self"), at);
  Found before = argument(call, "prepend", Places(at.size()));
  Found first = entry(call.getTensor("self"), Places(at.size()));
  auto *line = here ? std::get_if<Line>(&*here) : nullptr;
  auto *start = first ? std::get_if<Line>(&*first) : nullptr;
  auto *ahead = before ? std::get_if<Line>(&*before) : nullptr;
  if (!line || !start || !ahead || !line->isCount() || start->number - ahead->number != 1 ||
      integerOf(call, "n").value_or(1) != 1 || call.getArgument("append"))
    return std::nullopt;
  return Line{0, 0, 1};
}

/// Of what is the same number everywhere.
Found Follower::sums(graph::CallOp call, const Places &at) {
  Found each = entry(call.getOperand(0), at);
  auto *line = each ? std::get_if<Line>(&*each) : nullptr;
  int64_t dim = integerOf(call, "dim").value_or(0);
  dim += dim < 0 ? rankOf(call.getOperand(0)) : 0;
  if (!line || !line->isNumber() || dim < 0 || dim >= int64_t(at.size()) || at[dim].rounded)
    return std::nullopt;
  Line count = at[dim];
  count.number += 1;
  return join(*line, count, [](double x, double y) { return x * y; }, Form::Product);
}

std::optional<Follower::Places> pt2::placesOfToken(Value value, const TokenAxes &axes) {
  Follower::Places at(rankOf(value));
  for (auto [axis, line] : llvm::enumerate(at)) {
    if (axes.axis(value) == axis)
      line.row = 1;
    else if (!isOne(value, axis))
      return std::nullopt;
  }
  return at;
}
