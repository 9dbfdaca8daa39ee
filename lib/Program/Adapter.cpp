#include "ctxc/Program/Adapter.h"
#include "ctxc/Numerics/EachCpu.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

int64_t VirtualEntries::size() const {
  int64_t numbers = 0;
  for (const KeysAndValues &each : attentions)
    numbers += each.keys.size() + each.values.size();
  return numbers;
}

int64_t Adapter::size() const {
  int64_t numbers = entries.size();
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
  if (auto slice = splitSliceName(change.parameter))
    made.erase(slice->first);
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

static llvm::Error checkFloats(StringRef name, RankedTensorType type) {
  if (type.getElementType().isF32())
    return llvm::Error::success();
  return makeError(name + ": is stored as " + nameOf(storageOf(type.getElementType())) +
                   ", which an adapter is not added to; read the weights as float32");
}

/// numbers += left right, each sum in float64.
CTXC_EACH_CPU static void addProduct(const float *left, const float *right, int64_t rows,
                                     int64_t columns, int64_t rank, float *numbers) {
  constexpr int64_t together = 64; // sums that stay in registers and in the nearest cache
  for (int64_t from = 0; from < columns; from += together)
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t count = std::min(together, columns - from);
      float *to = numbers + i * columns + from;
      double sum[together] = {};
      for (int64_t k = 0; k < rank; ++k)
        for (int64_t j = 0; j < count; ++j)
          sum[j] += double(left[i * rank + k]) * right[k * columns + from + j];
      for (int64_t j = 0; j < count; ++j)
        to[j] = float(to[j] + sum[j]);
    }
}

/// A bank that is one tensor, with the changes of its entries; as it is stored if there are none.
llvm::Expected<const void *> AdaptedWeights::getBank(StringRef name, RankedTensorType type) {
  auto data = original.get(name, type);
  if (!data)
    return data;
  std::vector<float> &numbers = made[name];
  if (!numbers.empty())
    return numbers.data();
  const int64_t size = type.getNumElements() / type.getDimSize(0);
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    auto matrix = matrices.find(sliceName(name, i));
    if (matrix == matrices.end())
      continue;
    if (llvm::Error error = checkFloats(name, type))
      return std::move(error);
    if (numbers.empty()) {
      const auto *from = static_cast<const float *>(*data);
      numbers.assign(from, from + type.getNumElements());
    }
    const MatrixChange &change = matrix->second;
    if (type.getShape().drop_front() != ArrayRef<int64_t>({change.rows, change.columns}))
      return wrongShape(name, Twine(change.rows) + " x " + Twine(change.columns), type.getShape());
    addProduct(change.left.data(), change.right.data(), change.rows, change.columns, change.rank,
               numbers.data() + i * size);
  }
  return numbers.empty() ? *data : numbers.data();
}

llvm::Expected<const void *> AdaptedWeights::get(StringRef name, RankedTensorType type) {
  if (type.getRank() == 3)
    return getBank(name, type);
  auto data = original.get(name, type);
  auto matrix = matrices.find(name);
  auto vector = vectors.find(name);
  if (!data || (matrix == matrices.end() && vector == vectors.end()))
    return data;
  std::vector<float> &numbers = made[name];
  if (!numbers.empty())
    return numbers.data();
  if (llvm::Error error = checkFloats(name, type))
    return std::move(error);
  const auto *from = static_cast<const float *>(*data);
  numbers.assign(from, from + type.getNumElements());
  if (matrix != matrices.end()) {
    const MatrixChange &change = matrix->second;
    if (type.getShape() != ArrayRef<int64_t>({change.rows, change.columns}))
      return wrongShape(name, Twine(change.rows) + " x " + Twine(change.columns), type.getShape());
    addProduct(change.left.data(), change.right.data(), change.rows, change.columns, change.rank,
               numbers.data());
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
