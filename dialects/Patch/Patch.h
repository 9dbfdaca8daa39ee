//===- Patch.h - the patch dialect: ops that form and apply patches -------===//
#ifndef CTXC_DIALECTS_PATCH_PATCH_H
#define CTXC_DIALECTS_PATCH_PATCH_H

#include "dialects/XF/XF.h"
#include <string>

#include "dialects/Patch/PatchDialect.h.inc"
#include "dialects/Patch/PatchEnums.h.inc"

namespace ctxc::patch {

/// How the parts of a patch change the stored parameter.
struct PatchForm {
  enum Kind {
    Delta,         ///< one part: the change, of the parameter's own shape
    Rank1,         ///< u, v: u vᵀ
    Rank1EachSlice ///< u, v, selected: u_j v_jᵀ is added to slice selected_j along the
                   ///< parameter's first dimension; to none if the index is negative. If slices are
                   ///< vectors, v_j is one number
  };
  Kind kind = Delta;
  bool transposed = false; ///< the parameter is stored with u and v in each other's place
};

/// The input of PatchableOpInterface::buildParts.
struct PatchRequest {
  mlir::Value target; ///< the op's result should become this
  mlir::Value result; ///< its result without the patch; null unless formsFromResult
  llvm::SmallVector<mlir::Value> operands;
  UpdateKind update = UpdateKind::naive; ///< of a scale: naive, unless it follows an inverted norm
  int64_t index = 0;                     ///< of the op's obligation
  std::string lemma;                     ///< of the obligation
};

} // namespace ctxc::patch

#include "dialects/Patch/PatchInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Patch/PatchOps.h.inc"

#endif // CTXC_DIALECTS_PATCH_PATCH_H
