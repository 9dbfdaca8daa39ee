#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Program/PatchParts.h"
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

MaterializedWeights::MaterializedWeights(Weights &original, const Patch &patch,
                                         const ParallelFor &threads, WeightMemory *memory)
    : original(original), threads(threads), memory(memory) {
  for (const ParameterPatch &entry : patch.parameters)
    if (auto slice = splitSliceName(entry.parameter))
      patches[slice->first].push_back({slice->second, &entry});
    else
      patches[entry.parameter].push_back({std::nullopt, &entry});
}

/// Adds a patch to the numbers of a tensor, from `from` to `to`, both stored as `dtype`.
static void add(const ParameterPatch &patch, DType dtype, const uint8_t *from, uint8_t *to,
                const ParallelFor &threads) {
  bool isDelta = patch.kind == ParameterPatch::Kind::Delta;
  int64_t columns = isDelta ? (patch.shape.empty() ? 1 : patch.shape.back()) : patch.v.size();
  int64_t rows = (isDelta ? patch.delta.size() : patch.u.size() * patch.v.size()) /
                 std::max<int64_t>(1, columns);
  threads(rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const double *change = isDelta ? patch.delta.data() + row * columns : patch.v.data();
      size_t start = bytesOf(dtype, row * columns);
      addDoubles(dtype, from + start, isDelta ? 1 : patch.u[row], ArrayRef<double>(change, columns),
                 to + start);
    }
  });
}

WeightMemory::Bytes WeightMemory::take(size_t size) {
  auto found = spare.find(size);
  if (found == spare.end())
    return Bytes(size);
  Bytes bytes = std::move(found->second);
  spare.erase(found);
  return bytes;
}

void WeightMemory::giveBack(Bytes bytes) {
  size_t size = bytes.size();
  spare.emplace(size, std::move(bytes));
}

MaterializedWeights::~MaterializedWeights() {
  if (memory)
    for (auto &entry : made)
      memory->giveBack(std::move(entry.second.second));
}

llvm::Expected<const void *> MaterializedWeights::getPart(StringRef name, RankedTensorType type,
                                                          ArrayRef<ElementRun> runs) {
  return patches.contains(name) ? nullptr : original.getPart(name, type, runs);
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
    return makeError(
        name + ": is stored as " + nameOf(dtype) +
        ", which cannot hold a patch; keep the patch factored, or read the weights with "
        "storage type f32");
  const auto *from = static_cast<const uint8_t *>(*data);
  size_t size = bytesOf(dtype, type.getNumElements());
  bytes = memory ? memory->take(size) : WeightMemory::Bytes(size);
  if (llvm::any_of(found->second, [](const auto &entry) { return entry.first.has_value(); }))
    std::copy_n(from, bytes.size(), bytes.begin()); // slices without a patch stay as they are
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
    int64_t start = bytesOf(dtype, first);
    add(*patch, dtype, from + start, bytes.data() + start, threads);
  }
  madeType = type;
  return bytes.data();
}
