#include "ctxc/Runtime/MaterializedWeights.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;

DType ctxc::storageOf(Type type) {
  return type.isBF16() ? DType::BF16 : type.isF16() ? DType::F16 : DType::F32;
}

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (auto [i, dim] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(dim);
  return text + ")";
}

llvm::Error ctxc::checkSizes(const ParameterPatch &patch, ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(patch.shape) != shape)
    return makeError(patch.parameter + ": the patch is for shape " + printShape(patch.shape) +
                     ", the model's parameter has " + printShape(shape));
  int64_t elements = 1;
  for (int64_t dim : shape)
    elements *= dim;
  bool fits = patch.kind == ParameterPatch::Kind::Delta
                  ? int64_t(patch.delta.size()) == elements
                  : shape.size() == 2 && int64_t(patch.u.size()) == shape[0] &&
                        int64_t(patch.v.size()) == shape[1];
  if (!fits)
    return makeError(patch.parameter + ": a patch of " + Twine(patch.u.size()) + ", " +
                     Twine(patch.v.size()) + " and " + Twine(patch.delta.size()) +
                     " numbers (u, v, delta) does not fit shape " + printShape(shape));
  return llvm::Error::success();
}

MaterializedWeights::MaterializedWeights(Weights &original, const Patch &patch)
    : original(original) {
  for (const ParameterPatch &entry : patch.parameters)
    patches[entry.parameter] = &entry;
}

/// Adds a patch to a parameter's numbers.
static void add(const ParameterPatch &patch, std::vector<double> &numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] += patch.kind == ParameterPatch::Kind::Delta
                      ? patch.delta[i]
                      : patch.u[i / patch.v.size()] * patch.v[i % patch.v.size()];
}

llvm::Expected<const void *> MaterializedWeights::get(StringRef name, RankedTensorType type) {
  llvm::Expected<const void *> data = original.get(name, type);
  const ParameterPatch *patch = patches.lookup(name);
  if (!data || !patch)
    return data;
  auto &[madeType, bytes] = made[name];
  if (madeType == type)
    return bytes.data();
  if (llvm::Error error = checkSizes(*patch, type.getShape()))
    return std::move(error);
  DType dtype = storageOf(type.getElementType());
  std::vector<double> numbers(type.getNumElements());
  readDoubles(dtype, static_cast<const uint8_t *>(*data), numbers);
  add(*patch, numbers);
  bytes.resize(numbers.size() * (bitsOf(dtype) / 8));
  writeDoubles(dtype, numbers, bytes.data());
  madeType = type;
  return bytes.data();
}
