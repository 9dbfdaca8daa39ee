//===- PatchParts.h - converts a block's parts of a patch to stored changes ===//
//
// A block writes and reads the patch of a parameter as the parts of the op that
// uses it (patch::PatchableOpInterface); a Patch holds changes of stored tensors. These
// functions convert between the two, for all executors.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_PATCHPARTS_H
#define CTXC_PROGRAM_PATCHPARTS_H

#include "ctxc/Program/Patch.h"
#include "ctxc/Program/Weights.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"

namespace ctxc {

/// The parts of one parameter's patch, for one token: u, v, or Δ, or u, v and indices.
using PatchParts = std::vector<std::vector<double>>;

/// What patches need to know about a parameter of a block in a layer.
struct PatchedParameter {
  std::string stored; ///< its name in the checkpoint; with a `*`, it stands for several tensors
  llvm::SmallVector<int64_t, 3> shape; ///< of the whole parameter
  patch::PatchForm form;               ///< of the op that reads it; Delta if no op says

  bool isSliced() const {
    return form.kind == patch::PatchForm::Rank1EachSlice || isBankName(stored);
  }
};

/// The parameter `name` of `block`, a layer's plain form (`layer` may be null: the block's own
/// names). An error if the block has no parameter of that name.
llvm::Expected<PatchedParameter> findPatched(xf::BlockOp block, xf::LayerOp layer,
                                             llvm::StringRef name);

/// `parts` as changes of stored tensors: one change, or one for each slice that they
/// change. Errors: parts that do not have the parameter's sizes.
llvm::Expected<std::vector<ParameterPatch>> toStored(const PatchedParameter &parameter,
                                                     PatchParts parts);

/// The inverse, for parts of `sizes` numbers each; empty if `patch` does not change the parameter.
/// Errors: sizes that do not fit, more slices than the parts have room for.
llvm::Expected<PatchParts> fromStored(const PatchedParameter &parameter, const Patch &patch,
                                      llvm::ArrayRef<int64_t> sizes);

} // namespace ctxc

#endif // CTXC_PROGRAM_PATCHPARTS_H
