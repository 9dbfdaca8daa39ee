#include "PatchEntries.h"
#include "ctxc/Runtime/StepChecks.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

//===----------------------------------------------------------------------===//
// Orientation
//===----------------------------------------------------------------------===//

static xf::ParamOp findParameter(xf::BlockOp block, StringRef name) {
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
    if (param.getName() == name)
      return param;
  return nullptr;
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
    bool transposed = isTransposed(block, param.getName());
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
  else if (isTransposed(block, param.getName()))
    result.parts = {part(patch.v), part(patch.u)};
  else
    result.parts = {part(patch.u), part(patch.v)};
  return result;
}
