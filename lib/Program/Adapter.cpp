#include "ctxc/Program/Adapter.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

int64_t Adapter::size() const {
  int64_t numbers = 0;
  for (const MatrixChange &change : matrices)
    numbers += change.left.size() + change.right.size();
  for (const VectorChange &change : vectors)
    numbers += change.delta.size();
  return numbers;
}

int64_t Adapter::rank() const {
  int64_t largest = 0;
  for (const MatrixChange &change : matrices)
    largest = std::max(largest, change.rank);
  return largest;
}

void ctxc::scale(Adapter &adapter, double strength) {
  auto multiply = [strength](std::vector<float> &numbers) {
    for (float &x : numbers)
      x = float(x * strength);
  };
  for (MatrixChange &change : adapter.matrices)
    multiply(change.left);
  for (VectorChange &change : adapter.vectors)
    multiply(change.delta);
}

static bool isFinite(ArrayRef<float> numbers) {
  return llvm::all_of(numbers, [](float x) { return std::isfinite(x); });
}

llvm::Error AdaptedWeights::add(MatrixChange change) {
  if (int64_t(change.left.size()) != change.rows * change.rank ||
      int64_t(change.right.size()) != change.rank * change.columns)
    return makeError(change.parameter + ": the adapter has factors of " +
                     Twine(change.left.size()) + " and " + Twine(change.right.size()) +
                     " numbers, expected " + Twine(change.rows * change.rank) + " and " +
                     Twine(change.rank * change.columns));
  if (!isFinite(change.left) || !isFinite(change.right))
    return makeError(change.parameter + ": the adapter has a number that is not finite");
  made.erase(change.parameter);
  std::string name = change.parameter;
  matrices[name] = std::move(change);
  return llvm::Error::success();
}

llvm::Error AdaptedWeights::add(VectorChange change) {
  if (!isFinite(change.delta))
    return makeError(change.parameter + ": the adapter has a number that is not finite");
  made.erase(change.parameter);
  std::string name = change.parameter;
  vectors[name] = std::move(change);
  return llvm::Error::success();
}

llvm::Error AdaptedWeights::add(const Adapter &adapter) {
  for (const MatrixChange &change : adapter.matrices)
    if (llvm::Error error = add(change))
      return error;
  for (const VectorChange &change : adapter.vectors)
    if (llvm::Error error = add(change))
      return error;
  return llvm::Error::success();
}

static llvm::Error wrongShape(StringRef name, const Twine &found, ArrayRef<int64_t> shape) {
  std::string expected;
  for (int64_t size : shape)
    expected += (expected.empty() ? "" : " x ") + std::to_string(size);
  return makeError(name + ": the adapter's change is of " + found + " numbers, expected " +
                   expected + ", as the model's parameter has");
}

/// numbers += left right, each sum in float64.
static void addProduct(const MatrixChange &change, std::vector<float> &numbers) {
  std::vector<double> sum(change.columns);
  for (int64_t i = 0; i < change.rows; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int64_t k = 0; k < change.rank; ++k) {
      double factor = change.left[i * change.rank + k];
      const float *right = change.right.data() + k * change.columns;
      for (int64_t j = 0; j < change.columns; ++j)
        sum[j] += factor * right[j];
    }
    for (int64_t j = 0; j < change.columns; ++j)
      numbers[i * change.columns + j] = float(numbers[i * change.columns + j] + sum[j]);
  }
}

llvm::Expected<const void *> AdaptedWeights::get(StringRef name, RankedTensorType type) {
  auto data = original.get(name, type);
  auto matrix = matrices.find(name);
  auto vector = vectors.find(name);
  if (!data || (matrix == matrices.end() && vector == vectors.end()))
    return data;
  std::vector<float> &numbers = made[name];
  if (!numbers.empty())
    return numbers.data();
  if (!type.getElementType().isF32())
    return makeError(name + ": is stored as " + nameOf(storageOf(type.getElementType())) +
                     ", which an adapter is not added to; read the weights as float32");
  const auto *from = static_cast<const float *>(*data);
  numbers.assign(from, from + type.getNumElements());
  if (matrix != matrices.end()) {
    const MatrixChange &change = matrix->second;
    if (type.getShape() != ArrayRef<int64_t>({change.rows, change.columns}))
      return wrongShape(name, Twine(change.rows) + " x " + Twine(change.columns), type.getShape());
    addProduct(change, numbers);
  }
  if (vector != vectors.end()) {
    const std::vector<float> &delta = vector->second.delta;
    if (int64_t(delta.size()) != type.getNumElements())
      return wrongShape(name, Twine(delta.size()), type.getShape());
    for (auto [number, change] : llvm::zip(numbers, delta))
      number += change;
  }
  return numbers.data();
}
