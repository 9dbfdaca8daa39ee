#include "ctxc/Runtime/MaterializedWeights.h"
#include "ctxc/Runtime/PatchParts.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;

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
    if (auto slice = splitSliceName(entry.parameter))
      patches[slice->first].push_back({slice->second, &entry});
    else
      patches[entry.parameter].push_back({std::nullopt, &entry});
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
  auto found = patches.find(name);
  if (!data || found == patches.end())
    return data;
  auto &[madeType, bytes] = made[name];
  if (madeType == type)
    return bytes.data();
  DType dtype = storageOf(type.getElementType());
  if (isQuantized(dtype))
    return makeError(name + ": is stored as " + nameOf(dtype) +
                     ", which cannot hold a patch; keep the patch factored, or read the weights as "
                     "--dtype f32");
  const auto *from = static_cast<const uint8_t *>(*data);
  bytes.assign(from, from + bytesOf(dtype, type.getNumElements()));
  for (auto [slice, patch] : found->second) {
    ArrayRef<int64_t> shape = type.getShape();
    int64_t first = 0, count = type.getNumElements();
    if (slice) {
      if (shape.size() < 2 || *slice >= shape.front())
        return makeError(patch->parameter + ": the patch changes a slice that the model's "
                                            "parameter does not have");
      count /= shape.front();
      first = *slice * count;
      shape = shape.drop_front();
    }
    if (llvm::Error error = checkSizes(*patch, shape))
      return std::move(error);
    std::vector<double> numbers(count);
    readDoubles(dtype, from + bytesOf(dtype, first), numbers);
    add(*patch, numbers);
    writeDoubles(dtype, numbers, bytes.data() + bytesOf(dtype, first));
  }
  madeType = type;
  return bytes.data();
}
