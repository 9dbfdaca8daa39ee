// Blocks from the paper's plans of a module's blocks.
#include "BuildFromPlans.h"
#include "FreeName.h"
#include "ctxc/Transforms/BuildPatch.h"

using namespace mlir;

namespace ctxc {

LogicalResult checkOneModel(ModuleOp module) {
  auto models = llvm::to_vector(module.getOps<xf::ModelOp>());
  if (models.size() < 2)
    return success();
  InFlightDiagnostic error = models[1].emitError("is the second model of a module; expected at "
                                                 "most one, whose layers are judged together");
  error.attachNote(models[0].getLoc()) << "the first one is here";
  return error;
}

FailureOr<unsigned> buildFromPlans(ModuleOp module, const ModelOptions &options,
                                   BuildFromPlan build) {
  if (failed(checkOneModel(module)))
    return failure();
  unsigned built = 0;
  bool failures = false;
  for (const VerdictGroup &group : groupVerdicts(checkModel(module, options))) {
    xf::BlockOp block = group.block;
    if (llvm::any_of(block.getBody().getOps(),
                     [](Operation &op) { return isa<patch::PatchDialect>(op.getDialect()); }))
      continue;
    const BlockPlan &plan = group.verdict->plan;
    if (plan.runs > 1) {
      failures = true;
      block.emitError("runs several times with the same parameters, and has no patch of one run; "
                      "expected a patch for a whole text");
      continue;
    }
    if (failed(emitVerdict(group)))
      failures = true;
    else if (plan.isEmpty())
      continue;
    else if (build(block, plan))
      ++built;
    else
      failures = true;
  }
  return failures ? FailureOr<unsigned>() : built;
}

LogicalResult buildPatchBlocks(ModuleOp module, const ModelOptions &options) {
  return buildFromPlans(module, options, [&](xf::BlockOp block, const BlockPlan &plan) {
    if (!buildAppliedBlock(block, plan, freeName(module, block, "_applied")))
      return xf::BlockOp();
    xf::BlockOp dual =
        buildDualBlock(block, plan, options.update, freeName(module, block, "_dual"));
    if (dual)
      packLinears(dual);
    return dual;
  });
}

} // namespace ctxc
