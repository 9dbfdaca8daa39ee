//===- Patch.h - the patch dialect: what patches are made of --------------===//
#ifndef CTXC_DIALECTS_PATCH_PATCH_H
#define CTXC_DIALECTS_PATCH_PATCH_H

#include "dialects/XF/XF.h"
#include <string>

#include "dialects/Patch/PatchDialect.h.inc"
#include "dialects/Patch/PatchEnums.h.inc"

namespace ctxc::patch {

/// What the parts of a patch say of the stored parameter.
struct PatchForm {
  enum Kind {
    Delta,         ///< one part: the change, of the parameter's own shape
    Rank1,         ///< u, v: u vᵀ
    Rank1EachSlice ///< u, v, selected: u_j v_jᵀ is added to slice selected_j along the
                   ///< parameter's first dimension; a negative index to none. Of slices that are
                   ///< vectors, v_j is one number
  };
  Kind kind = Delta;
  bool transposed = false; ///< the parameter is stored with u and v in each other's place
};

/// What PatchableOpInterface::buildParts is asked for.
struct PatchRequest {
  mlir::Value target; ///< what the op's result is to be
  mlir::Value result; ///< what it is without the patch; null unless formsFromResult
  llvm::SmallVector<mlir::Value> operands;
  UpdateKind update = UpdateKind::naive; ///< of a scale: naive, unless it follows an inverted norm
  int64_t index = 0;                     ///< of the op's obligation
  std::string lemma;                     ///< that it belongs to
};

} // namespace ctxc::patch

#include "dialects/Patch/PatchInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Patch/PatchOps.h.inc"

#endif // CTXC_DIALECTS_PATCH_PATCH_H
