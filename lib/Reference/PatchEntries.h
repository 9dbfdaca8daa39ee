// Between the patch of a block's parameter, in its op's orientation, and the
// patch of the stored parameter, in the file's.
#ifndef CTXC_LIB_REFERENCE_PATCHENTRIES_H
#define CTXC_LIB_REFERENCE_PATCHENTRIES_H

#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

/// The stored form of `patch`, of a parameter of `block` in `layer`; one token.
/// Fails where the parts do not have the parameter's sizes.
llvm::Expected<ParameterPatch> toStored(const BlockPatch &patch, xf::BlockOp block,
                                        xf::LayerOp layer);

/// The other way, for the block's parameter `name`.
llvm::Expected<BlockPatch> fromStored(const ParameterPatch &patch, xf::BlockOp block,
                                      llvm::StringRef name);

/// The weights with a patch added, in float64, and rounded to the storage type.
class MaterializedWeights : public Weights {
public:
  /// Both must outlive this object.
  MaterializedWeights(Weights &original, const Patch &patch);
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override;
  std::string hash() override { return original.hash(); }

private:
  Weights &original;
  llvm::StringMap<const ParameterPatch *> patches;
  llvm::StringMap<std::pair<mlir::Type, std::vector<uint8_t>>> made;
};

/// The checkpoint element type of the floating type `type`.
DType dtypeOf(mlir::Type type);

/// Whether sizes of a stored patch agree with each other and with `shape`.
llvm::Error checkSizes(const ParameterPatch &patch, llvm::ArrayRef<int64_t> shape);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_PATCHENTRIES_H
