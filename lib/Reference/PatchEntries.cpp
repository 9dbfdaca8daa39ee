#include "PatchEntries.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

llvm::Expected<std::vector<ParameterPatch>>
reference::toStored(const BlockPatch &patch, xf::BlockOp block, xf::LayerOp layer) {
  auto parameter = findPatched(block, layer, patch.parameter);
  if (!parameter)
    return parameter.takeError();
  PatchParts parts;
  for (const Matrix &part : patch.parts)
    parts.emplace_back(part.data(), part.data() + part.size());
  return ctxc::toStored(*parameter, parts);
}

llvm::Expected<BlockPatch> reference::fromStored(const Patch &patch, xf::BlockOp block,
                                                 xf::LayerOp layer, patch::LoadOp load) {
  auto parameter = findPatched(block, layer, load.getParameter());
  if (!parameter)
    return parameter.takeError();
  auto sizes = llvm::map_to_vector(load.getParts(), [](Value part) {
    return cast<RankedTensorType>(part.getType()).getNumElements();
  });
  auto parts = ctxc::fromStored(*parameter, patch, sizes);
  if (!parts)
    return parts.takeError();
  BlockPatch result{load.getParameter().str(), {}};
  for (const std::vector<double> &part : *parts)
    result.parts.push_back(Eigen::Map<const Eigen::RowVectorXd>(part.data(), part.size()));
  return result;
}
