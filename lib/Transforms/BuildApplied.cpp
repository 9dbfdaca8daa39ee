// The applied block: a block's ordinary forward under a given patch, factored.
#include "PlanSites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "dialects/Patch/PatchNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ctxc {

SmallVector<xf::ParamOp> plannedParameters(const BlockPlan &plan) {
  return llvm::map_to_vector(plan.patchedOps(), parameterOf);
}

/// Clones `site`, and loads and applies its patch.
static void applySite(OpBuilder &b, Operation *site, IRMapping &values) {
  auto patchable = cast<patch::PatchableOpInterface>(site);
  bool isDelta = patchable.getPatchForm().kind == patch::PatchForm::Delta;
  auto load = patch::LoadOp::create(b, renamed(site->getLoc(), isDelta ? "_delta" : "_uv"),
                                    patchable.getPartTypes(), parameterOf(site).getName());
  Value result;
  if (patchable.appliesToResult()) {
    result = b.clone(*site, values)->getResult(0);
    result.setLoc(renamed(site->getLoc(), "_0"));
  }
  auto operands =
      llvm::map_to_vector(site->getOperands(), [&](Value v) { return values.lookup(v); });
  values.map(site->getResult(0), patchable.buildPatched(b, operands, result, load.getResults()));
}

xf::BlockOp buildAppliedBlock(xf::BlockOp block, const BlockPlan &plan, StringRef name) {
  if (failed(checkBuildable(block, plan)))
    return nullptr;
  OpBuilder b(block);
  b.setInsertionPointAfter(block);
  auto applied = xf::BlockOp::create(b, block.getLoc(), b.getStringAttr(name),
                                     block.getFunctionTypeAttr(), /*sym_visibility=*/nullptr,
                                     /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = applied.getBody().emplaceBlock();
  IRMapping values;
  for (BlockArgument arg : block.getBody().getArguments())
    values.map(arg, body.addArgument(arg.getType(), arg.getLoc()));
  b.setInsertionPointToStart(&body);
  SmallVector<Operation *> sites = plan.patchedOps();
  for (Operation &op : block.getBody().front()) {
    if (llvm::is_contained(sites, &op))
      applySite(b, &op, values);
    else
      b.clone(op, values);
  }
  return applied;
}

} // namespace ctxc
