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
  constexpr double tolerance = 2e-6;
  if (!std::isfinite(found.amplitude) || found.amplitude < 1e-6)
    return std::nullopt;
  for (int64_t row = 0; row < runs.from.rows(); ++row)
    for (int64_t head = 0; head < runs.from.cols(); head += width) {
      auto x = [&](int64_t i) { return runs.from(row, head + i); };
      auto isAt = [&](int64_t i, double expected, double within) {
        return std::abs(runs.to(row, head + i) - expected) <= within;
      };
      for (int64_t i = 0; i < pairs; ++i) {
        double turned = double(runs.positions[row]) * angles[i], a = x(first(i)), b = x(second(i));
        double c = found.amplitude * std::cos(turned), s = found.amplitude * std::sin(turned);
        // A table may have been made of angles in float32.
        double within = (tolerance + std::abs(turned) * 0x1p-23) * (1 + std::hypot(a, b));
        if (!isAt(first(i), a * c - b * s, within) || !isAt(second(i), b * c + a * s, within))
          return std::nullopt;
      }
      for (int64_t i = 2 * pairs; i < width; ++i)
        if (!isAt(i, x(i), tolerance * (1 + std::abs(x(i)))))
          return std::nullopt;
    }
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
    Matrix parted(runs.from.rows(), runs.from.cols());
    for (int64_t i = 0; i < parted.cols(); ++i) {
      int64_t at = i % width, from = at < width / 2 ? 2 * at : 2 * (at - width / 2) + 1;
      parted.col(i) = runs.from.col(i - at + from);
    }
    if (std::optional<Rotation> found =
            fit({runs.positions, parted, runs.to}, xf::RotaryStyle::half, width, width / 2)) {
      found->parted = true;
      return found;
    }
  }
  return std::nullopt;
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
  SmallVector<int64_t> spread{0, 1}, dense{0, 1};
  for (int64_t i = 2; i < count; ++i) {
    spread.push_back(spread.back() + i * i);
    dense.push_back(i);
  }
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
  for (ArrayRef<int64_t> positions : {ArrayRef(spread), ArrayRef(dense)}) {
    auto to = reference::runFunction(body, positions, operands);
    if (!to) { // a table of positions may be short
      llvm::consumeError(to.takeError());
      continue;
    }
    if (to->rows() != count || to->cols() != operands[0].cols())
      break;
    known[key] = fit({positions, operands[0], *to}, widths);
    break;
  }
  return known[key];
}

std::optional<std::pair<Rotation, Value>> Rotations::find(Value rotated) {
  Value from = beforeRotation(rotated);
  std::optional<Rotation> found = from ? measure(rotated, from) : std::nullopt;
  return found ? std::optional(std::pair(*found, from)) : std::nullopt;
}
