// Between the patch of a block's parameter, in its op's orientation, and the
// patch of the stored parameter, in the file's.
#ifndef CTXC_LIB_REFERENCE_PATCHENTRIES_H
#define CTXC_LIB_REFERENCE_PATCHENTRIES_H

#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Runtime/MaterializedWeights.h"

namespace ctxc::reference {

/// The stored form of `patch`, of a parameter of `block` in `layer`; one token.
/// Fails where the parts do not have the parameter's sizes.
llvm::Expected<ParameterPatch> toStored(const BlockPatch &patch, xf::BlockOp block,
                                        xf::LayerOp layer);

/// The other way, for the block's parameter `name`.
llvm::Expected<BlockPatch> fromStored(const ParameterPatch &patch, xf::BlockOp block,
                                      llvm::StringRef name);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_PATCHENTRIES_H
