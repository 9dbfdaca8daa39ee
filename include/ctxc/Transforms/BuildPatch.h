//===- BuildPatch.h - dual and applied blocks from a block and its plan ---===//
#ifndef CTXC_TRANSFORMS_BUILDPATCH_H
#define CTXC_TRANSFORMS_BUILDPATCH_H

#include "ctxc/Planning/ModelCheck.h"
#include "dialects/Patch/Patch.h"

namespace ctxc {

/// Builds beside `block` the dual block `name`: (x_C…, x…) → (y_C…, y…), the full
/// and the reduced run of one token together, with the patch of every planned
/// parameter formed (patch.rank1, patch.invert_rms_norm, patch.solve_scale),
/// stored (patch.store) and applied, so that y is the patched layer's output.
/// Ops of the full run come before their counterparts of the reduced
/// run; contextual ops get `run full` and `run reduced`. The target of an input site is its
/// full-run output; the target of the output site is solved through the chain from T_C and the
/// reduced run's other values (Algorithm 1, self-correcting). The obligation of the i-th of
/// plannedParameters counts under index i; the obligations of divisions along the chain follow,
/// then those of selections that the plan makes the same. All patches are stored; the naive update
/// stores a zero for a norm matrix. Null, with a diagnostic, if the plan cannot be built (see
/// lib/Transforms/PlanSites.h).
xf::BlockOp buildDualBlock(xf::BlockOp block, const BlockPlan &plan, patch::UpdateKind update,
                           llvm::StringRef name);

/// Builds beside `block` the applied block `name`: its ordinary forward with the
/// patch of the planned parameters loaded by patch.load and applied,
/// factored. The applied block does not depend on the update: W_down is
/// among the loaded parameters whenever the plan has a normMatrix. Null, with a diagnostic, if the
/// plan cannot be built.
xf::BlockOp buildAppliedBlock(xf::BlockOp block, const BlockPlan &plan, llvm::StringRef name);

/// The value in a block that depends only on the token: its embedding, times constants. Null if
/// there is none, or if the token has another use.
mlir::Value valueOfToken(xf::BlockOp block);

/// Builds beside `block`, the model's embedding block, the block `name` that takes an embedding in
/// place of that value (Program/Input.h): (embedding) → the same results. Null if there is no such
/// block, because the token has another use than its row of one table, or because the block reads
/// the context.
xf::BlockOp buildEmbeddingBlock(xf::BlockOp block, llvm::StringRef name);

/// The parameters that the plan patches, by the block's names, in the order in
/// which the dual block stores and the applied block loads them.
llvm::SmallVector<xf::ParamOp> plannedParameters(const BlockPlan &plan);

/// Packs xf.linear ops of `block` that share a weight (and have operands of one
/// type) into one patch.linears, unless one needs the other's result, and xf.expert_linear
/// ops into patch.expert_linears. Returns how many ops were packed.
unsigned packLinears(xf::BlockOp block);

/// Builds the dual block (packed) and the applied block of every block of `module` by
/// the paper's plan, once for each distinct set of bindings, even if the module has no model to
/// run. Fails with a diagnostic for each rejected or undecided verdict.
mlir::LogicalResult buildPatchBlocks(mlir::ModuleOp module, const ModelOptions &options);

/// Makes a model a chain of layers: the ops that feed the layers become the block `<model>_embed`,
/// and the ops that read their results the block `<model>_head` (in a model without layers, all ops
/// become `<model>_forward`). Each is called by its own xf.layer with prefix "". Fails, with a
/// located diagnostic, if there are ops between layers.
mlir::LogicalResult outlineModelEnds(xf::ModelOp model);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_BUILDPATCH_H
