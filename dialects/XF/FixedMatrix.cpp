// Matrices that are settings: their rank, and their inverse.
#include "dialects/XF/FixedMatrix.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

/// A pivot below the first share of the largest entry is a zero that was rounded; one above the
/// second is not zero; between them the rank is unknown.
static constexpr double surelyZero = 1e-12, surelyNot = 1e-6;
/// More multiplications are too many for a check.
static constexpr double mostWork = 3e7;

namespace {
/// Eliminates with the largest pivot that is left.
class Elimination {
public:
  Elimination(std::vector<double> numbers, int64_t rows, int64_t columns, int64_t eliminated)
      : m(std::move(numbers)), rows(rows), columns(columns), eliminated(eliminated) {}

  /// The sizes of the pivots, the largest first.
  std::vector<double> run();
  /// Of [M | I], after which M is a permutation: the right half, in M's order.
  std::vector<double> right() const;

private:
  double &at(int64_t r, int64_t c) { return m[r * columns + c]; }
  double at(int64_t r, int64_t c) const { return m[r * columns + c]; }

  std::vector<double> m;
  int64_t rows, columns, eliminated;
  std::vector<std::pair<int64_t, int64_t>> places; ///< of the pivots
};
} // namespace

std::vector<double> Elimination::run() {
  std::vector<double> pivots;
  std::vector<bool> used(rows, false), done(eliminated, false);
  for (int64_t step = 0; step < std::min(rows, eliminated); ++step) {
    int64_t row = -1, column = -1;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < eliminated && !used[r]; ++c)
        if (!done[c] && (row < 0 || std::abs(at(r, c)) > std::abs(at(row, column))))
          std::tie(row, column) = std::pair(r, c);
    double pivot = at(row, column);
    pivots.push_back(std::abs(pivot));
    if (pivot == 0)
      break;
    used[row] = done[column] = true;
    places.push_back({row, column});
    for (int64_t c = 0; c < columns; ++c)
      at(row, c) /= pivot;
    for (int64_t r = 0; r < rows; ++r)
      if (double factor = at(r, column); r != row && factor != 0)
        for (int64_t c = 0; c < columns; ++c)
          at(r, c) -= factor * at(row, c);
  }
  return pivots;
}

std::vector<double> Elimination::right() const {
  int64_t width = columns - eliminated;
  std::vector<double> result(eliminated * width);
  for (auto [row, column] : places)
    for (int64_t c = 0; c < width; ++c)
      result[column * width + c] = at(row, eliminated + c);
  return result;
}

/// The matrix of `op` with its numbers, as it multiplies.
static MatrixFacts sizesOf(LinearOp op) {
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  MatrixFacts facts{type.getDimSize(0), type.getDimSize(1), std::nullopt};
  if (op.getTransposed())
    std::swap(facts.rows, facts.columns);
  return facts;
}

static std::vector<double> multiplying(LinearOp op, ArrayRef<double> stored) {
  std::vector<double> numbers(stored);
  MatrixFacts sizes = sizesOf(op);
  if (op.getTransposed())
    for (int64_t r = 0; r < sizes.rows; ++r)
      for (int64_t c = 0; c < sizes.columns; ++c)
        numbers[r * sizes.columns + c] = stored[c * sizes.rows + r];
  return numbers;
}

std::optional<MatrixFacts> ctxc::xf::matrixFacts(LinearOp op, const Facts &weight) {
  if (!weight.numbers)
    return std::nullopt;
  MatrixFacts facts = sizesOf(op);
  std::vector<double> numbers = multiplying(op, *weight.numbers);
  double largest = 0;
  for (int64_t r = 0; r < facts.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < facts.columns; ++c) {
      double size = std::abs(numbers[r * facts.columns + c]);
      sum += size;
      largest = std::max(largest, size);
    }
    facts.anyZeroRow |= sum == 0;
    facts.largestRowSum = std::max(facts.largestRowSum, sum);
  }
  if (double(numbers.size()) * std::min(facts.rows, facts.columns) > mostWork)
    return facts;
  facts.rank = 0;
  for (double pivot : Elimination(numbers, facts.rows, facts.columns, facts.columns).run()) {
    if (pivot > surelyNot * largest)
      ++*facts.rank;
    else if (pivot > surelyZero * largest)
      return MatrixFacts{facts.rows, facts.columns, std::nullopt, facts.anyZeroRow,
                         facts.largestRowSum};
  }
  return facts;
}

/// Whether a layer gives `setting` a value of its own.
static bool isGivenByLayers(SettingOp setting) {
  auto block = setting->getParentOfType<BlockOp>();
  auto module = block ? block->getParentOfType<ModuleOp>() : ModuleOp();
  bool isGiven = false;
  if (module)
    module.walk([&](LayerOp layer) {
      isGiven |= layer.getBlock() == block.getSymName() && layer.getSettingsAttr() &&
                 layer.getSettingsAttr().contains(setting.getName());
    });
  return isGiven;
}

std::optional<std::vector<double>> ctxc::xf::ownNumbers(SettingOp setting) {
  if (!setting.getValueAttr() || isGivenByLayers(setting))
    return std::nullopt;
  SmallVector<double> numbers = SettingOp::numbers(setting.getType(), setting.getValueAttr());
  return std::vector<double>(numbers.begin(), numbers.end());
}

std::optional<std::vector<double>> ctxc::xf::inverseOf(LinearOp op) {
  auto setting = op.getWeight().getDefiningOp<SettingOp>();
  MatrixFacts sizes = sizesOf(op);
  double n = double(sizes.rows);
  if (!setting || sizes.rows != sizes.columns || 2 * n * n * n > mostWork)
    return std::nullopt;
  std::optional<std::vector<double>> numbers = ownNumbers(setting);
  if (!numbers)
    return std::nullopt;
  std::vector<double> own = multiplying(op, *numbers), both(2 * own.size(), 0.0);
  for (int64_t r = 0; r < sizes.rows; ++r) {
    std::copy_n(own.begin() + r * sizes.rows, sizes.rows, both.begin() + 2 * r * sizes.rows);
    both[(2 * r + 1) * sizes.rows + r] = 1;
  }
  Elimination elimination(std::move(both), sizes.rows, 2 * sizes.rows, sizes.rows);
  std::vector<double> pivots = elimination.run();
  constexpr double smallest = 1e-3; // one step corrects the roundings of float32
  if (int64_t(pivots.size()) < sizes.rows ||
      !(*llvm::min_element(pivots) > smallest * pivots.front()))
    return std::nullopt;
  return elimination.right();
}
