//===- PlanSites.h - what the builders of patches ask of a plan -----------===//
#ifndef CTXC_LIB_TRANSFORMS_PLANSITES_H
#define CTXC_LIB_TRANSFORMS_PLANSITES_H

#include "ctxc/Planning/BlockPlan.h"
#include "dialects/Patch/Patch.h"

namespace ctxc {

/// The parameter of an assignable op, or null where it is not an xf.param.
xf::ParamOp parameterOf(mlir::Operation *site);

/// The op that is patched first for an output: the norm matrix where `update` patches it,
/// else G.
mlir::Operation *firstPatched(const OutputPatch &output, patch::UpdateKind update);

/// Whether `plan` can be built for `block`; if not, a diagnostic at
/// the op that prevents it. Planning makes no such plans: this is for plans
/// that are made by hand.
///
/// - P1: there are output sites, and all sites are patchable ops of the block
///   (PatchableOpInterface) on a parameter of their own that is not frozen.
/// - P2: a change of each site's parameter reaches every output of the op.
/// - P3: each chain leads from its site's result to its goal, each link solvable, and the
///   outputs can be solved one after the other.
/// - P4: a norm matrix is the linear op, read by nothing else, before the rms
///   normalisation that the output site, a scale, alone reads.
/// - P5: no input site depends on an output site.
mlir::LogicalResult checkBuildable(xf::BlockOp block, const BlockPlan &plan);

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_PLANSITES_H
