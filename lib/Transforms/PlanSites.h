//===- PlanSites.h - what the builders of patches ask of a plan -----------===//
#ifndef CTXC_LIB_TRANSFORMS_PLANSITES_H
#define CTXC_LIB_TRANSFORMS_PLANSITES_H

#include "ctxc/Planning/BlockPlan.h"

namespace ctxc {

/// The ops whose parameters `plan` patches, in block order: F, the matrix before
/// a post-norm (if any), and G. The i-th has obligation i.
llvm::SmallVector<mlir::Operation *> plannedSites(const BlockPlan &plan);

/// The parameter of an assignable op, or null where it is not an xf.param.
xf::ParamOp parameterOf(mlir::Operation *site);

/// All ops of the block that read a result of `op`, directly or not.
llvm::SmallPtrSet<mlir::Operation *, 16> dependentsOf(mlir::Operation *op);

/// Whether `plan` is one that can be built for `block`; if not, a diagnostic at
/// the op that is in the way. Planning makes no such plans: this is for those
/// made by hand.
///
/// - P1: there is an output site, and all sites are xf.linear, xf.bias or
///   xf.scale ops of the block on a parameter of their own that is not frozen.
/// - P2: a linear's data is a vector, and a bias or scale has its data's shape.
/// - P3: the chain leads from the output site's result to yielded value `output`,
///   each link solvable, its other operands independent of what is patched for
///   the output.
/// - P4: a norm matrix is the linear op, read by nothing else, before the rms
///   normalisation that the output site, a scale, alone reads.
/// - P5: no input site depends on the output site.
mlir::LogicalResult checkBuildable(xf::BlockOp block, const BlockPlan &plan);

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_PLANSITES_H
