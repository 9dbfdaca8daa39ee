//===- BuildProgram.h - a model and its plans made ready to run -----------===//
#ifndef CTXC_TRANSFORMS_BUILDPROGRAM_H
#define CTXC_TRANSFORMS_BUILDPROGRAM_H

#include "ctxc/Planning/BlockPlan.h"
#include "ctxc/Program/Program.h"

namespace ctxc {

/// The plan of a layer; none, or a plan without an output site, if the layer should not be patched.
/// `index` counts the layers between the model's ends.
using PlanCallback = llvm::function_ref<std::optional<BlockPlan>(xf::LayerOp layer,
                                                                 xf::BlockOp block, int64_t index)>;

/// Makes the module's one xf.model ready to run: its ends become blocks
/// (outlineModelEnds), and each plan of a block gets, once, its dual block (with
/// linears packed) and its applied block. Fails with a diagnostic if the module does not have
/// exactly one model, if there are ops between layers, or if a plan cannot be built.
mlir::FailureOr<Program> buildProgram(mlir::ModuleOp module, PlanCallback planOf,
                                      patch::UpdateKind update);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_BUILDPROGRAM_H
