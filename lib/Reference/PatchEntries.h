// Converts between the patch of a block's parameter, with a row for each token, and the patches of
// stored tensors (ctxc/Program/PatchParts.h).
#ifndef CTXC_LIB_REFERENCE_PATCHENTRIES_H
#define CTXC_LIB_REFERENCE_PATCHENTRIES_H

#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Reference/Evaluation.h"

namespace ctxc::reference {

/// The stored form of `patch`, of a parameter of `block` in `layer`; one token.
/// Fails where the parts do not have the parameter's sizes.
llvm::Expected<std::vector<ParameterPatch>> toStored(const BlockPatch &patch, xf::BlockOp block,
                                                     xf::LayerOp layer);

/// The parts of `patch` that `load` reads; none where it does not change the parameter.
llvm::Expected<BlockPatch> fromStored(const Patch &patch, xf::BlockOp block, xf::LayerOp layer,
                                      patch::LoadOp load);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_PATCHENTRIES_H
