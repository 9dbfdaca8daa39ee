#include "Rotation.h"
#include "GraphValues.h"
#include "Mask.h"
#include "Raise.h"
#include "ctxc/Reference/RunFunction.h"
#include <random>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;
using reference::Matrix;

/// Ops that rotations are made of.
static bool isPartOfRotation(graph::CallOp call) {
  static constexpr StringLiteral names[] = {"add",
                                            "sub",
                                            "mul",
                                            "neg",
                                            "cat",
                                            "concat",
                                            "stack",
                                            "slice",
                                            "select",
                                            "split",
                                            "chunk",
                                            "unbind",
                                            "view",
                                            "unsqueeze",
                                            "squeeze",
                                            "permute",
                                            "clone",
                                            "reshape",
                                            "flatten",
                                            "_to_copy",
                                            "contiguous",
                                            "type_as",
                                            "to",
                                            "transpose",
                                            "split_with_sizes",
                                            "view_as_complex",
                                            "view_as_real",
                                            "roll",
                                            "flip",
                                            "alias",
                                            "expand"};
  return call.getTarget().starts_with("aten.") && llvm::is_contained(names, call.getBaseName());
}

static bool isComplex(Value value) {
  return isa<ComplexType>(cast<graph::SymbolicType>(value.getType()).getElementType());
}

/// The one value of the model that `rotated` is made of, with numbers of positions.
Value Rotations::beforeRotation(Value rotated) const {
  constexpr unsigned mostCalls = 48;
  static constexpr StringLiteral last[] = {"add", "sub", "cat", "concat", "stack", "view_as_real"};
  auto end = rotated.getDefiningOp<graph::CallOp>();
  if (!end || !isPartOfRotation(end) || !llvm::is_contained(last, end.getBaseName()))
    return {};
  llvm::SmallSetVector<Value, 8> open;
  open.insert(rotated);
  bool readsPositions = false;
  for (unsigned count = 0; count < mostCalls; ++count) {
    // What is made last has no user that is still open.
    Value latest;
    for (Value value : open) {
      auto call = value.getDefiningOp<graph::CallOp>();
      if (call && (!latest || latest.getDefiningOp()->isBeforeInBlock(call)))
        latest = value;
    }
    auto call = latest ? latest.getDefiningOp<graph::CallOp>() : graph::CallOp();
    if (!call || !isPartOfRotation(call) || axes.mixing(call) != Mixing::None)
      return {};
    for (Value result : call.getResults())
      open.remove(result);
    for (Value operand : call.getOperands()) {
      if (axes.isData(operand))
        open.insert(operand);
      else if (axes.countAxes(operand) == 1)
        readsPositions = true;
      else if (!numberIn(operand, axes))
        return {};
    }
    if (readsPositions && open.size() == 1 && !isComplex(open[0]) && axes.axis(open[0]))
      return open[0];
  }
  return {};
}

namespace {
/// Runs of one rotation: rows of what is rotated, and of what it becomes.
struct Runs {
  ArrayRef<int64_t> positions;
  const Matrix &from, &to;
};
} // namespace

/// What numbers of a rotation may differ by: so much, and a share of the angle, which a table may
/// have rounded before it took the sine.
struct Tolerance {
  double much, ofAngle;
};

/// Whether the runs are those of a rotation whose entries are in order.
static bool turnsAlike(const Runs &runs, const Rotation &rotation, ArrayRef<double> angles,
                       Tolerance tolerance) {
  bool isHalf = rotation.style == xf::RotaryStyle::half;
  int64_t pairs = angles.size(), width = rotation.width;
  for (int64_t row = 0; row < runs.from.rows(); ++row)
    for (int64_t head = 0; head < runs.from.cols(); head += width) {
      auto x = [&](int64_t i) { return runs.from(row, head + i); };
      auto isAt = [&](int64_t i, double expected, double within) {
        return std::abs(runs.to(row, head + i) - expected) <= within;
      };
      for (int64_t i = 0; i < pairs; ++i) {
        int64_t first = isHalf ? i : 2 * i, second = isHalf ? i + pairs : 2 * i + 1;
        double turned = double(runs.positions[row]) * angles[i], a = x(first), b = x(second);
        double c = rotation.amplitude * std::cos(turned), s = rotation.amplitude * std::sin(turned);
        double within =
            (tolerance.much + std::abs(turned) * tolerance.ofAngle) * (1 + std::hypot(a, b));
        if (!isAt(first, a * c - b * s, within) || !isAt(second, b * c + a * s, within))
          return false;
      }
      for (int64_t i = 2 * pairs; i < width; ++i)
        if (!isAt(i, x(i), tolerance.much * (1 + std::abs(x(i)))))
          return false;
    }
  return true;
}

/// The numbers of each head in the order that a parted rotation has them.
static Matrix parted(const Matrix &rows, int64_t width) {
  Matrix result(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.cols(); ++i) {
    int64_t at = i % width, from = at < width / 2 ? 2 * at : 2 * (at - width / 2) + 1;
    result.col(i) = rows.col(i - at + from);
  }
  return result;
}

/// Whether runs at other positions are those of the rotation that was found.
static bool turnsAlike(const Runs &runs, const Rotation &found) {
  SmallVector<double> angles(found.frequencies.begin(), found.frequencies.end());
  // An angle that few positions tell is known less well than a table has it.
  constexpr Tolerance rough{1e-4, 0x1p-20};
  if (!found.parted)
    return turnsAlike(runs, found, angles, rough);
  return turnsAlike({runs.positions, parted(runs.from, found.width), runs.to}, found, angles,
                    rough);
}

/// The rotation of `pairs` pairs in heads of `width` that `runs` show; the rest of a head stays.
static std::optional<Rotation> fit(const Runs &runs, xf::RotaryStyle style, int64_t width,
                                   int64_t pairs) {
  Rotation found{style, 1, {}, width};
  bool isHalf = style == xf::RotaryStyle::half;
  SmallVector<double> angles;
  auto first = [&](int64_t i) { return isHalf ? i : 2 * i; };
  auto second = [&](int64_t i) { return isHalf ? i + pairs : 2 * i + 1; };
  for (int64_t i = 0; i < pairs; ++i) {
    double angle = 0;
    // A table's sines are rounded: the farther the position is, the less that changes the angle.
    for (int64_t row = 1; row < runs.from.rows(); ++row) {
      double x = runs.from(row, first(i)), y = runs.from(row, second(i));
      double u = runs.to(row, first(i)), v = runs.to(row, second(i));
      double length = x * x + y * y, c = (u * x + v * y) / length, s = (v * x - u * y) / length;
      double position = double(runs.positions[row]), turned = std::atan2(s, c);
      double turns = std::round((angle * position - turned) / (2 * M_PI));
      angle = (turned + 2 * M_PI * turns) / position;
      if (i == 0 && row == 1)
        found.amplitude = std::hypot(c, s);
    }
    angles.push_back(angle);
  }
  if (!std::isfinite(found.amplitude) || found.amplitude < 1e-6 ||
      !turnsAlike(runs, found, angles, {2e-6, 0x1p-23}))
    return std::nullopt;
  if (std::abs(found.amplitude - 1) < 1e-6)
    found.amplitude = 1;
  found.frequencies.assign(angles.begin(), angles.end());
  return found;
}

/// Tries what the runs allow.
static std::optional<Rotation> fit(const Runs &runs, ArrayRef<int64_t> widths) {
  for (int64_t width : widths) {
    int64_t changed = 0;
    for (int64_t i = 0; i < runs.from.cols(); ++i)
      if (runs.from.col(i) != runs.to.col(i))
        changed = std::max(changed, i % width + 1);
    for (int64_t pairs : {width / 2, (changed + 1) / 2})
      for (auto style : {xf::RotaryStyle::half, xf::RotaryStyle::interleaved})
        if (pairs > 0 && 2 * pairs <= width)
          if (std::optional<Rotation> found = fit(runs, style, width, pairs))
            return found;
    if (width % 2)
      continue;
    Matrix ordered = parted(runs.from, width);
    if (std::optional<Rotation> found =
            fit({runs.positions, ordered, runs.to}, xf::RotaryStyle::half, width, width / 2)) {
      found->parted = true;
      return found;
    }
  }
  return std::nullopt;
}

/// The rows of the largest table that a function reads; 0 where it reads none.
static int64_t rowsOfTables(graph::FunctionOp function) {
  int64_t rows = 0;
  auto look = [&](Value value) {
    SmallVector<int64_t> several;
    auto type = cast<graph::SymbolicType>(value.getType());
    for (unsigned axis = 0; axis < type.getRank(); ++axis)
      if (int64_t size = type.getNumber(axis).value_or(0); size > 1)
        several.push_back(size);
    if (several.size() > 1)
      rows = std::max(rows, *llvm::max_element(several));
  };
  for (auto [argument, axis] :
       llvm::zip_equal(function.getBody().getArguments(), function.getAxes()))
    if (axis < 0)
      look(argument);
  for (auto stored : function.getBody().getOps<graph::StoredOp>())
    look(stored);
  return rows;
}

std::optional<Rotation> Rotations::measure(Value rotated, Value from) {
  auto type = tokenType(from, axes), made = tokenType(rotated, axes);
  if (!type || !made) {
    llvm::consumeError(type.takeError());
    llvm::consumeError(made.takeError());
    return std::nullopt;
  }
  constexpr int64_t mostEntries = 1 << 20;
  if (type->getNumElements() != made->getNumElements() || type->getNumElements() > mostEntries)
    return std::nullopt;
  std::optional<Capture::Function> function = capture.capture(rotated, from, "rotation");
  if (!function)
    return std::nullopt;
  std::string key = function->name.getValue().str();
  for (Value argument : ArrayRef(function->arguments).drop_front())
    key += ";" + argument.getDefiningOp<graph::StoredOp>().getName().str();
  auto [place, isNew] = known.try_emplace(key);
  if (!isNew)
    return place->second;
  // A program for a fixed number of tokens runs for no other.
  int64_t count = 10;
  if (auto fixed = dyn_cast<IntegerAttr>(axes.tokens()))
    count = fixed.getInt();
  if (count < 3 || count > 64)
    return std::nullopt;
  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  std::vector<Matrix> operands{Matrix(count, type->getNumElements())};
  for (int64_t i = 0; i < operands[0].size(); ++i)
    operands[0].data()[i] = normal(generator);
  for (Value argument : ArrayRef(function->arguments).drop_front()) {
    std::optional<std::vector<double>> given = numbers(argument.getDefiningOp<graph::StoredOp>());
    if (!given)
      return std::nullopt;
    operands.push_back(Eigen::Map<const Matrix>(given->data(), 1, int64_t(given->size())));
  }
  SmallVector<int64_t> widths{type->getShape().back()};
  if (type->getRank() > 1)
    widths.push_back(widths[0] * type->getDimSize(type->getRank() - 2));
  graph::FunctionOp body = capture.functionOf(function->name);
  auto at = [&](ArrayRef<int64_t> positions) -> std::optional<Matrix> {
    auto to = reference::runFunction(body, positions, operands);
    if (!to) { // a table of positions may be short
      llvm::consumeError(to.takeError());
      return std::nullopt;
    }
    return std::move(*to);
  };
  SmallVector<int64_t> spread{0, 1}, dense = llvm::to_vector(llvm::seq<int64_t>(0, count));
  for (int64_t i = 2; i < count; ++i)
    spread.push_back(spread.back() + i * i);
  std::optional<Matrix> to = at(spread);
  bool isShort = !to && (to = at(dense));
  if (!to || to->rows() != count || to->cols() != operands[0].cols())
    return std::nullopt;
  std::optional<Rotation> found =
      fit({isShort ? ArrayRef(dense) : ArrayRef(spread), operands[0], *to}, widths);
  // What a table has at other positions may be anything.
  constexpr int64_t mostRuns = 256, mostRows = 1 << 13;
  int64_t rows = rowsOfTables(body), runs = rows > mostRows ? 16 : rows / count;
  for (int64_t i = 0; found && i < std::min(runs, mostRuns); ++i) {
    int64_t from = (rows - count) * i / std::max<int64_t>(std::min(runs, mostRuns) - 1, 1);
    auto next = llvm::to_vector(llvm::seq<int64_t>(from, from + count));
    std::optional<Matrix> more = at(next);
    if (more && !turnsAlike({next, operands[0], *more}, *found))
      found = std::nullopt;
  }
  return known[key] = found;
}

std::optional<std::pair<Rotation, Value>> Rotations::find(Value rotated) {
  Value from = beforeRotation(rotated);
  std::optional<Rotation> found = from ? measure(rotated, from) : std::nullopt;
  return found ? std::optional(std::pair(*found, from)) : std::nullopt;
}
