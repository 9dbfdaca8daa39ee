//===- BuildFromPlans.h - one more block from every block and its plan ----===//
#ifndef CTXC_LIB_TRANSFORMS_BUILDFROMPLANS_H
#define CTXC_LIB_TRANSFORMS_BUILDFROMPLANS_H

#include "ctxc/Planning/ModelCheck.h"

namespace ctxc {

/// Fails, with an error at the second, where the module has several models: a verdict is on one.
mlir::LogicalResult checkOneModel(mlir::ModuleOp module);

using BuildFromPlan = llvm::function_ref<xf::BlockOp(xf::BlockOp, const BlockPlan &)>;

/// Plans every block of `module` and calls `build` for each that has something to
/// patch; all rejected and undecided verdicts are reported. Blocks that were built before are left
/// unchanged. Returns how many were built.
mlir::FailureOr<unsigned> buildFromPlans(mlir::ModuleOp module, const ModelOptions &options,
                                         BuildFromPlan build);

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_BUILDFROMPLANS_H
