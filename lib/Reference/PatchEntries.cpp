#include "PatchEntries.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

DType reference::dtypeOf(Type type) {
  return type.isBF16() ? DType::BF16 : type.isF16() ? DType::F16 : DType::F32;
}

//===----------------------------------------------------------------------===//
// Orientation
//===----------------------------------------------------------------------===//

static xf::ParamOp findParameter(xf::BlockOp block, StringRef name) {
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
    if (param.getName() == name)
      return param;
  return nullptr;
}

/// Whether the block's linear op reads the stored matrix transposed, so that the
/// factors of its patch change places in the file.
static bool isTransposed(xf::ParamOp param) {
  return llvm::any_of(param->getUsers(), [](Operation *user) {
    auto linear = dyn_cast<xf::LinearOp>(user);
    return linear && linear.getTransposed();
  });
}

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (auto [i, dim] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(dim);
  return text + ")";
}

llvm::Error reference::checkSizes(const ParameterPatch &patch, ArrayRef<int64_t> shape) {
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

llvm::Expected<ParameterPatch> reference::toStored(const BlockPatch &patch, xf::BlockOp block,
                                                   xf::LayerOp layer) {
  xf::ParamOp param = findParameter(block, patch.parameter);
  if (!param)
    return errorAt(block, "has no parameter '" + patch.parameter + "', whose patch is stored");
  ParameterPatch stored;
  stored.parameter = layer.getStoredName(patch.parameter);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(param.getType()).getShape();
  stored.shape.assign(shape.begin(), shape.end());
  auto numbers = [](const Matrix &m) { return std::vector<double>(m.data(), m.data() + m.size()); };
  if (patch.parts.size() == 1) {
    stored.kind = ParameterPatch::Kind::Delta;
    stored.delta = numbers(patch.parts[0]);
  } else {
    bool transposed = isTransposed(param);
    stored.u = numbers(patch.parts[transposed ? 1 : 0]);
    stored.v = numbers(patch.parts[transposed ? 0 : 1]);
  }
  if (llvm::Error error = checkSizes(stored, shape))
    return error;
  return stored;
}

llvm::Expected<BlockPatch> reference::fromStored(const ParameterPatch &patch, xf::BlockOp block,
                                                 StringRef name) {
  xf::ParamOp param = findParameter(block, name);
  if (!param)
    return errorAt(block, "has no parameter '" + name + "', whose patch is loaded");
  ArrayRef<int64_t> shape = cast<RankedTensorType>(param.getType()).getShape();
  if (llvm::Error error = checkSizes(patch, shape))
    return error;
  auto part = [](ArrayRef<double> x) {
    return Matrix(Eigen::Map<const Eigen::RowVectorXd>(x.data(), x.size()));
  };
  BlockPatch result{name.str(), {}};
  if (patch.kind == ParameterPatch::Kind::Delta)
    result.parts.push_back(part(patch.delta));
  else if (isTransposed(param))
    result.parts = {part(patch.v), part(patch.u)};
  else
    result.parts = {part(patch.u), part(patch.v)};
  return result;
}

//===----------------------------------------------------------------------===//
// MaterializedWeights
//===----------------------------------------------------------------------===//

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
    return error;
  DType dtype = dtypeOf(type.getElementType());
  std::vector<double> numbers(type.getNumElements());
  readDoubles(dtype, static_cast<const uint8_t *>(*data), numbers);
  add(*patch, numbers);
  bytes.resize(numbers.size() * (bitsOf(dtype) / 8));
  writeDoubles(dtype, numbers, bytes.data());
  madeType = type;
  return bytes.data();
}
