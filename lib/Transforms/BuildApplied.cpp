// The applied block: a block's ordinary forward under a given patch, factored.
#include "Names.h"
#include "PlanSites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ctxc {

SmallVector<xf::ParamOp> plannedParameters(const BlockPlan &plan) {
  return llvm::map_to_vector(plan.patchedOps(), parameterOf);
}

static Type partType(xf::ParamOp param) {
  return RankedTensorType::get(param.getType().getShape(), Float32Type::get(param.getContext()));
}

/// The types of a site's patch: u and v, or Δ.
static SmallVector<Type> partTypes(Operation *site) {
  if (auto linear = dyn_cast<xf::LinearOp>(site))
    return {linear.getType(), linear.getData().getType()};
  return {partType(parameterOf(site))};
}

/// Clones `site` and takes in its patch.
static void applySite(OpBuilder &b, Operation *site, IRMapping &values) {
  Location loc = site->getLoc();
  bool isLinear = isa<xf::LinearOp>(site);
  auto load = patch::LoadOp::create(b, renamed(loc, isLinear ? "_uv" : "_delta"), partTypes(site),
                                    parameterOf(site).getName());
  if (auto linear = dyn_cast<xf::LinearOp>(site)) {
    Value base = b.clone(*site, values)->getResult(0);
    base.setLoc(renamed(loc, "_0"));
    Value patched = patch::ApplyRank1Op::create(b, loc, base.getType(), base, load.getResult(0),
                                                load.getResult(1), values.lookup(linear.getData()));
    values.map(linear.getResult(), patched);
    return;
  }
  Value parameter = cast<xf::AssignableOpInterface>(site).getParameterOperand().get();
  Value original = values.lookup(parameter);
  values.map(parameter, applyDelta(b, original, load.getResult(0)));
  b.clone(*site, values);
  values.map(parameter, original);
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
