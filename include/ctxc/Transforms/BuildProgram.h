//===- BuildProgram.h - a model and its plans made ready to run -----------===//
#ifndef CTXC_TRANSFORMS_BUILDPROGRAM_H
#define CTXC_TRANSFORMS_BUILDPROGRAM_H

#include "ctxc/Planning/BlockPlan.h"
#include "ctxc/Program/Program.h"

namespace ctxc {

/// The plan of a layer: none, or one without an output site, where it is not to be
/// patched. `index` counts the layers between the model's ends.
using PlanCallback = llvm::function_ref<std::optional<BlockPlan>(xf::LayerOp layer,
                                                                 xf::BlockOp block, int64_t index)>;

/// Makes the module's one xf.model ready to run: its ends become blocks
/// (outlineModelEnds), and each plan of a block gets, once, its dual block (with
/// linears packed) and its applied block. Fails with a diagnostic where the module
/// has not exactly one model, ops stand between layers, or a plan cannot be built.
mlir::FailureOr<Program> buildProgram(mlir::ModuleOp module, PlanCallback planOf,
                                      patch::UpdateKind update);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_BUILDPROGRAM_H
