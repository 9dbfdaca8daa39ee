// A model made ready to run: its layers, and for those that are patched the dual
// and the applied block of their plan.
#include "ctxc/Transforms/BuildProgram.h"
#include "FreeName.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/SymbolTable.h"
#include <map>

using namespace mlir;

namespace ctxc {
namespace {

/// A key by which two plans of one block are the same: the ops that they name. (What
/// obligations say about likelihoods does not change the code.)
using PlanKey = std::vector<std::pair<Operation *, unsigned>>;

PlanKey keyOf(xf::BlockOp block, const BlockPlan &plan) {
  PlanKey key = {{block, 0}};
  for (const OutputPatch &output : plan.outputs) {
    key.push_back({output.site, ~0u});
    key.push_back({output.normMatrix, ~0u});
    for (ChainLink link : output.links)
      key.push_back({link.op, link.operand});
  }
  for (Operation *site : plan.inputSites)
    key.push_back({site, ~0u});
  return key;
}

struct PatchedBlocks {
  xf::BlockOp dual, applied;
};

FailureOr<PatchedBlocks> buildBlocks(ModuleOp module, xf::BlockOp block, const BlockPlan &plan,
                                     patch::UpdateKind update) {
  PatchedBlocks made;
  made.applied = buildAppliedBlock(block, plan, freeName(module, block, "_applied"));
  made.dual = buildDualBlock(block, plan, update, freeName(module, block, "_dual"));
  if (!made.dual || !made.applied)
    return failure();
  packLinears(made.dual);
  return made;
}

FailureOr<xf::ModelOp> singleModel(ModuleOp module) {
  auto models = llvm::to_vector(module.getOps<xf::ModelOp>());
  if (models.size() == 1)
    return models.front();
  auto diag = emitError(module.getLoc(), "found ")
              << models.size() << " xf.model ops, expected one: what is to be run is a model";
  for (xf::ModelOp model : models)
    diag.attachNote(model.getLoc()) << "model '" << model.getSymName() << "'";
  return failure();
}

} // namespace

FailureOr<Program> buildProgram(ModuleOp module, PlanCallback planOf, patch::UpdateKind update) {
  FailureOr<xf::ModelOp> model = singleModel(module);
  if (failed(model))
    return failure();
  // What stands in the model already is a layer, whatever its block is called; what outlining adds
  // is an end.
  llvm::SmallPtrSet<Operation *, 32> own;
  for (xf::LayerOp layer : model->getBody().front().getOps<xf::LayerOp>())
    own.insert(layer);
  if (failed(outlineModelEnds(*model)))
    return failure();

  Program program;
  program.module = module;
  std::map<PlanKey, PatchedBlocks> built;
  for (xf::LayerOp layer : model->getBody().front().getOps<xf::LayerOp>()) {
    ProgramStep step;
    step.layer = layer;
    step.block = SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr());
    if (own.contains(layer)) {
      step.index = program.layers++;
      program.outputs.emplace_back();
      std::optional<BlockPlan> plan = planOf(layer, step.block, *step.index);
      // The plan of a block that does not read the context has no sites.
      if (plan && !plan->isEmpty()) {
        auto [entry, isNew] = built.try_emplace(keyOf(step.block, *plan));
        if (isNew) {
          auto blocks = buildBlocks(module, step.block, *plan, update);
          if (failed(blocks))
            return failure();
          entry->second = *blocks;
        }
        step.dual = entry->second.dual;
        step.applied = entry->second.applied;
        for (Operation *op : plan->patchedOps())
          if (plan->outputOf(op))
            program.outputs.back().push_back(Sites::name(op));
      }
    }
    program.steps.push_back(step);
  }
  // A model that reads the token elsewhere too takes no embeddings.
  auto readsToken = [](const ProgramStep &step) {
    xf::BlockOp block = step.block;
    return !block.getBody().getOps<xf::TokenOp>().empty();
  };
  if (llvm::count_if(program.steps, readsToken) == 1)
    if (ProgramStep &first = program.steps.front(); !first.index && readsToken(first))
      first.ofEmbedding =
          buildEmbeddingBlock(first.block, freeName(module, first.block, "_of_row"));
  Value logits = model->getBody().front().getTerminator()->getOperand(0);
  program.vocabulary = cast<RankedTensorType>(logits.getType()).getNumElements();
  program.positions = model->getPositions();
  return program;
}

} // namespace ctxc
