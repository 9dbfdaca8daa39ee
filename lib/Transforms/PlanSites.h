//===- PlanSites.h - what the builders of patches ask of a plan -----------===//
#ifndef CTXC_LIB_TRANSFORMS_PLANSITES_H
#define CTXC_LIB_TRANSFORMS_PLANSITES_H

#include "ctxc/Planning/BlockPlan.h"
#include "dialects/Patch/Patch.h"

namespace ctxc {

/// The ops whose parameters `plan` patches, in block order: F, the matrix before
/// a post-norm (if any), and G. The i-th has obligation i.
llvm::SmallVector<mlir::Operation *> plannedSites(const BlockPlan &plan);

/// The parameter of an assignable op, or null where it is not an xf.param.
xf::ParamOp parameterOf(mlir::Operation *site);

using OpSet = llvm::SmallPtrSet<mlir::Operation *, 16>;

/// All ops of the block that read a result of `op`, directly or not.
OpSet dependentsOf(mlir::Operation *op);

/// The op that is patched first for the output: the norm matrix where `update`
/// patches it, else G.
mlir::Operation *firstPatchedForOutput(const BlockPlan &plan, patch::UpdateKind update);

/// The value that the output's patch brings to what it was in the full run: the
/// plan's waist, or a yielded one. Null where the plan names neither.
mlir::Value goalOf(xf::BlockOp block, const BlockPlan &plan);

/// The ops whose reduced run has to wait for the patch of `first`: its dependents,
/// and every contextual op after a contextual one of these, with its dependents,
/// so that a block's contextual ops keep their order in all of its forms.
OpSet waitingFor(mlir::Operation *first);

/// Whether `plan` is one that can be built for `block`; if not, a diagnostic at
/// the op that is in the way. Planning makes no such plans: this is for those
/// made by hand.
///
/// - P1: there is an output site, and all sites are xf.linear, xf.bias or
///   xf.scale ops of the block on a parameter of their own that is not frozen.
/// - P2: a linear's data is a vector, and a bias or scale has its data's shape.
/// - P3: the chain leads from the output site's result to yielded value `output`, or to
///   the plan's waist, each link solvable, its other operands not waiting for what is
///   patched for the output.
/// - P4: a norm matrix is the linear op, read by nothing else, before the rms
///   normalisation that the output site, a scale, alone reads.
/// - P5: no input site depends on the output site.
mlir::LogicalResult checkBuildable(xf::BlockOp block, const BlockPlan &plan);

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_PLANSITES_H
